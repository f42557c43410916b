/**
 * Depth-first search through every schedule of a configuration, by running the real code anew for each (stateless model
 * checking), with two reductions.
 *
 * - State hashing. A state is the medium, the application's references, the clock, and for every instance the history of what
 *   it was answered and when; core is deterministic, so equal states have equal futures, and the second one needs no walk. A state
 *   is compared by 128 bits of SHA-256.
 * - Sleep sets (Godefroid 1996, with the rule for state matching of his section 5.3). After a step was explored in a state it sleeps in what
 *   its siblings lead to, for as long as only steps independent of it (`footprint.ts`) are taken: walking it there leads where
 *   the search has been. A state that is met again with fewer sleepers than before is walked again for those that slept then alone.
 *
 * Both cut walks, never states: every state that some schedule reaches is reached, and the invariants are looked at in each.
 */
import { surround } from './ambient.js'
import type { Bug } from './bug.js'
import type { Configuration } from './configuration.js'
import { independent } from './footprint.js'
import { Run } from './run.js'
import { type Chooser, walk } from './schedule.js'
import { idOf, replay } from './story.js'
import { digest, type Step } from './world.js'

export interface Reductions {
  /** Default true, both. Without them the search is a plain enumeration: slow, and the judge of the reductions. */
  readonly hashes?: boolean
  readonly sleeps?: boolean
  /** Whether calls that commute with everything are no points. Default true. */
  readonly stills?: boolean
}

export interface SearchOptions extends Reductions {
  readonly bug?: Bug
  /** Most schedules; a search that reaches it is not complete. */
  readonly schedulesMax?: number
  /** Told of every schedule that was walked to its end: what its instances have seen, and what the medium holds then. */
  readonly onEnd?: (end: string) => void
}

export interface Failure {
  /** Replays the schedule: `ALKBLOBS_SCHEDULE=<id>`. */
  readonly id: string
  readonly violations: readonly string[]
  /** Who did what, with what outcome. */
  readonly story: string
}

export interface Found {
  readonly configuration: string
  /** Distinct states. */
  readonly states: number
  /** Schedules begun; most are cut where they meet a state seen before. */
  readonly schedules: number
  /** Steps taken, those of replayed beginnings too. */
  readonly steps: number
  readonly depth: number
  readonly isComplete: boolean
  readonly failure: Failure | undefined
  /** Of processor time. */
  readonly seconds: number
}

/** A complete search of the list stays far below. */
const SCHEDULES_MAX = 200_000

/** Chosen where there is nothing to choose. */
const END = -1

/** A state on the path under way. */
interface Node {
  readonly steps: readonly Step[]
  /** Places of steps that are still to be walked from here; the first is under way. */
  readonly todo: number[]
  readonly sleeping: Step[]
}

export async function search(configuration: Configuration, options: SearchOptions = {}): Promise<Found> {
  const restore = surround()
  try {
    return await new Search(configuration, options).run()
  } finally {
    restore()
  }
}

class Search {
  readonly #configuration: Configuration
  readonly #options: SearchOptions
  readonly #path: Node[] = []
  /** Who slept in a state when it was walked. */
  readonly #seen = new Map<string, ReadonlySet<string>>()
  #schedules = 0
  #steps = 0
  #depth = 0

  constructor(configuration: Configuration, options: SearchOptions) {
    this.#configuration = configuration
    this.#options = options
  }

  async run(): Promise<Found> {
    const begun = process.cpuUsage()
    const { bug, stills = true, schedulesMax: max = SCHEDULES_MAX } = this.#options
    const prepared = await Run.prepare(this.#configuration, bug)
    let failure: Failure | undefined
    let isComplete = false
    while (!isComplete && failure === undefined && this.#schedules < max) {
      this.#schedules++
      const run = await Run.begin(prepared, this.#configuration, { bug, stills })
      const { depth, isCut } = await walk(run, this.#choose, this.#path.length - 1)
      this.#steps += depth
      this.#depth = Math.max(this.#depth, depth)
      if (run.world.violations.length > 0) failure = await this.#tell(prepared)
      else if (!isCut) this.#options.onEnd?.(`${run.world.seen()}|${run.pool.view.dump()}`)
      isComplete = !this.#next()
    }
    return {
      configuration: this.#configuration.name,
      states: this.#seen.size,
      schedules: this.#schedules,
      steps: this.#steps,
      depth: this.#depth,
      isComplete: isComplete && failure === undefined,
      failure,
      seconds: secondsSince(begun)
    }
  }

  readonly #choose: Chooser = (steps, depth, run) => {
    const known = this.#path[depth]
    if (known !== undefined) return known.todo[0]
    const node = this.#node(steps, run)
    // At its end a schedule has nothing to choose; it is walked on, to what must hold then, the first time it gets there.
    if (node === undefined || steps.length === 0) return node && END
    if (node.todo.length === 0) return undefined
    this.#path.push(node)
    return node.todo[0]
  }

  /** What is to be walked from a new end of the path; `undefined` for what was walked before. */
  #node(steps: readonly Step[], run: Run): Node | undefined {
    const { hashes = true, sleeps = true } = this.#options
    const sleeping = sleeps ? this.#asleep() : []
    const asleep = new Set(sleeping.map(({ id }) => id))
    const awake = steps.flatMap(({ id }, place) => (asleep.has(id) ? [] : [place]))
    if (!hashes) return { steps, todo: awake, sleeping }
    const state = stateOf(run)
    const before = this.#seen.get(state)
    if (before === undefined) {
      this.#seen.set(state, asleep)
      return { steps, todo: awake, sleeping }
    }
    this.#seen.set(state, new Set([...before].filter(id => asleep.has(id))))
    const todo = awake.filter(place => before.has((steps[place] as Step).id))
    return todo.length === 0 ? undefined : { steps, todo, sleeping: sleeping.filter(({ id }) => before.has(id)) }
  }

  /** The sleepers of the last state on the path that the step taken from it does not wake. */
  #asleep(): Step[] {
    const parent = this.#path.at(-1)
    if (parent === undefined) return []
    const taken = parent.steps[parent.todo[0] as number] as Step
    return parent.sleeping.filter(step => independent(step, taken))
  }

  /** Moves the path on to the next schedule; `false` if there is none. */
  #next(): boolean {
    for (let node = this.#path.at(-1); node !== undefined; node = this.#path.at(-1)) {
      const done = node.todo.shift()
      if (done !== undefined) node.sleeping.push(node.steps[done] as Step)
      if (node.todo.length > 0) return true
      this.#path.pop()
    }
    return false
  }

  #tell(prepared: Awaited<ReturnType<typeof Run.prepare>>): Promise<Failure> {
    const choices = this.#path.map(({ todo }) => todo[0] as number)
    return replay(prepared, this.#configuration, idOf(this.#configuration, choices), this.#options.bug)
  }
}

function stateOf(run: Run): string {
  return digest(run.digest())
}

function secondsSince(begun: NodeJS.CpuUsage): number {
  const { user, system } = process.cpuUsage(begun)
  return (user + system) / 1_000_000
}
