/**
 * One schedule under way: the clock, the steps that wait to be chosen, what every instance has seen, and the story so far.
 *
 * Every call into an engine parks here until the scheduler picks it, with its effect and its answer in one step, or in two where
 * the configuration splits them. Between two steps nothing runs.
 */
import { createHash } from 'node:crypto'
import type { Surroundings, Timer } from './ambient.js'
import type { Footprint } from './footprint.js'

/** Something that may happen next. */
export interface Step {
  /** The same in every schedule in which its instance has done the same before. */
  readonly id: string
  /** The instance it belongs to; the environment is one of its own. */
  readonly who: string
  readonly label: string
  readonly touches: Footprint
}

interface Parked extends Step {
  readonly happen: () => void
  /** An answer that is under way: a part of the state that neither the medium nor anybody's history shows. */
  readonly carries: string
}

/** A call to park. */
export interface Act<T> {
  readonly who: string
  readonly label: string
  readonly touches: Footprint
  readonly effect: () => Promise<T>
  /** What of the answer the instance's further course depends on. */
  readonly tell?: (answer: T) => unknown
  /** Whether the answer travels in a step of its own. */
  readonly split?: boolean
  /** Whether it commutes with whatever anybody else can do meanwhile: then it happens at once. */
  readonly isStill?: boolean
}

/** Any moment; pools are younger. */
const START_MS = 1_700_000_000_000
/** A timer up to this long may fire at any time: shorter spans are not told apart. Longer ones fire when an operation says so. */
const SHORT_MS = 1_000

const NOTHING: Footprint = {}

export class World implements Surroundings {
  clockMs = START_MS
  /** Whether calls wait to be chosen; before and after the explored part they pass. */
  isExploring = false
  /** Keeps the story; a replay for a reader does, a search does not. */
  readonly tells: boolean
  readonly story: string[] = []
  readonly violations: string[] = []
  readonly #histories = new Map<string, string>()
  readonly #counts = new Map<string, number>()
  readonly #gone = new Set<string>()
  readonly #intervals = new Map<string, { fire: () => void; ms: number }[]>()
  readonly #name: (text: string) => string
  #parked: Parked[] = []
  #current = ''

  constructor(tells: boolean, name: (text: string) => string) {
    this.tells = tells
    this.#name = name
  }

  /** The steps to choose from, in the order in which they came up. */
  get steps(): readonly Step[] {
    return this.#parked
  }

  /** Runs code of an instance outside of any step: what it starts is the instance's. */
  as<T>(who: string, run: () => T): T {
    this.#current = who
    return run()
  }

  /** Lets a step happen. It has come to rest when the caller's next turn begins. */
  take(id: string): Step {
    const step = this.#parked.find(parked => parked.id === id)
    if (step === undefined) throw new Error(`no step ${id} waits to be chosen`)
    this.#parked = this.#parked.filter(parked => parked !== step)
    this.#current = step.who
    step.happen()
    return step
  }

  /** Makes a call of an instance, when it is chosen. */
  act<T>({ who, label, touches, effect, tell = told, split = false, isStill = false }: Act<T>): Promise<T> {
    if (this.#gone.has(who)) return new Promise(() => undefined)
    if (!this.isExploring) return this.as(who, effect)
    if (isStill) return this.#still(who, label, effect, tell)
    return new Promise<T>((resolve, reject) => {
      const deliver = (answer: string, settle: () => void) => {
        const arrive = () => {
          this.note(who, `${label} -> ${answer}`)
          settle()
        }
        if (!split) return arrive()
        this.tell(who, `${label}: ${answer}, not yet told`)
        this.#park(who, `hears of ${label}`, NOTHING, arrive, answer)
      }
      this.#park(who, label, touches, () => {
        effect().then(
          answer => deliver(`${tell(answer) ?? 'done'}`, () => resolve(answer)),
          error => deliver(`fails: ${error instanceof Error ? error.message : error}`, () => reject(error))
        )
      })
    })
  }

  /** What happens at once is answered and told like everything else. */
  async #still<T>(who: string, label: string, effect: () => Promise<T>, tell: (answer: T) => unknown): Promise<T> {
    const answer = await effect()
    this.note(who, `${label} -> ${tell(answer) ?? 'done'}`)
    return answer
  }

  /** A step that is not a call: user code, or the environment. */
  happening(who: string, label: string, touches: Footprint, effect: () => void): Promise<void> {
    return this.act({ who, label, touches, effect: async () => effect() })
  }

  /** Something an instance has learnt: its further course may depend on it. */
  note(who: string, what: string): void {
    this.#histories.set(who, `${this.#histories.get(who) ?? ''}|${this.clockMs - START_MS}|${what}`)
    this.tell(who, what)
  }

  tell(who: string, what: string): void {
    if (this.tells) this.story.push(`${who.padEnd(2)} ${this.#name(what)}`)
  }

  /** An instance ends without a word: its calls are never answered, and it makes no more. */
  end(who: string): void {
    this.#gone.add(who)
    this.#parked = this.#parked.filter(parked => parked.who !== who)
  }

  hasEnded(who: string): boolean {
    return this.#gone.has(who)
  }

  violate(what: string): void {
    this.violations.push(this.#name(what))
  }

  /** Fires the intervals of an instance that are shorter or longer than a second: deadlines, or renewals. */
  tick(who: string, kind: 'short' | 'long'): void {
    // Who fires may take itself off the list.
    const mine = [...(this.#intervals.get(who) ?? [])]
    for (const { fire, ms } of mine) if (ms <= SHORT_MS === (kind === 'short')) fire()
  }

  /**
   * Everything that the instances' further course depends on, beside the medium: what each was answered, in its order and with
   * the time of it, which steps wait, and what they carry. Core is deterministic, so equal histories mean equal processes.
   */
  digest(): string {
    const waiting = this.#parked.map(({ id, carries }) => `${id} ${carries}`).sort()
    return `${this.clockMs}|${this.seen()}|${waiting.join()}|${[...this.#gone].sort().join()}`
  }

  /** What every instance was answered, in its order and with the time of it. */
  seen(): string {
    return [...this.#histories]
      .sort()
      .map(([who, history]) => `${who}${history}`)
      .join()
  }

  unique(length: number): Buffer {
    const bytes = Buffer.alloc(length)
    const count = this.#next(`unique ${this.#current}`)
    bytes.writeUInt32BE(count, length - 4)
    bytes[0] = this.#current.charCodeAt(0)
    return bytes
  }

  timeout(fire: () => void, ms: number): Timer {
    const who = this.#current
    if (ms > SHORT_MS || this.#gone.has(who)) return timer(() => undefined)
    if (!this.isExploring) {
      let cancelled = false
      setImmediate(() => {
        if (!cancelled) this.as(who, fire)
      })
      return timer(() => {
        cancelled = true
      })
    }
    const happen = () => {
      this.note(who, `timer of ${ms} ms`)
      fire()
    }
    const parked = this.#park(who, `timer of ${ms} ms`, NOTHING, happen)
    return timer(() => {
      this.#parked = this.#parked.filter(other => other !== parked)
    })
  }

  interval(fire: () => void, ms: number): Timer {
    const mine = this.#intervals.get(this.#current) ?? []
    this.#intervals.set(this.#current, mine)
    const one = { fire, ms }
    mine.push(one)
    return timer(() => void mine.splice(0, mine.length, ...mine.filter(other => other !== one)))
  }

  /** Lets everything that waits pass, and whatever comes after it. */
  open(): void {
    this.isExploring = false
    for (const { who, happen } of this.#parked.splice(0)) this.as(who, happen)
  }

  #park(who: string, label: string, touches: Footprint, happen: () => void, carries = ''): Parked {
    const parked = { id: `${who}${this.#next(who)}`, who, label, touches, happen, carries }
    this.#parked.push(parked)
    return parked
  }

  #next(counter: string): number {
    const count = (this.#counts.get(counter) ?? 0) + 1
    this.#counts.set(counter, count)
    return count
  }
}

/** 128 bits of SHA-256: two states are never taken for one. */
export function digest(text: string): string {
  return createHash('sha256').update(text).digest('base64').slice(0, 22)
}

function timer(cancel: () => void): Timer {
  const it: Timer = { unref: () => it, ref: () => it, refresh: () => it, cancel }
  return it
}

function told(answer: unknown): string | undefined {
  return JSON.stringify(answer)
}
