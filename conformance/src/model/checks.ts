/** Checks in batches until the time is over, and the report of a failure: what every model has in common. */
import fc from 'fast-check'

export interface ModelOptions {
  /** Most runs; each has a medium of its own. Default 1000. */
  readonly runs?: number
  /** When no further run is begun, in milliseconds. Default 7000. */
  readonly timeLimitMs?: number
  /** Most steps of a run. Default 60 for a store, 50 for an engine. */
  readonly stepsMax?: number
  /** How long a failure may be shortened, in milliseconds. Default 20000. */
  readonly shrinkLimitMs?: number
  /** What a failed run printed: the same runs again. */
  readonly seed?: number
  /** With `seed`: the one run that failed. */
  readonly path?: string
  /** With `seed` and `path`: the steps that a shortened run was left with. */
  readonly replayPath?: string
}

export interface ModelRuns {
  readonly runs: number
  /** Steps that were carried out, and their number by kind. */
  readonly steps: number
  readonly byKind: ReadonlyMap<string, number>
  /** Of the first check; each one after it has the next. */
  readonly seed: number
  /** Whether the time was over before the last run. */
  readonly isInterrupted: boolean
}

/** Runs of one check: they share a seed. */
const BATCH = 25

/** What a property reports to, and runs in. */
export interface Checking {
  count(name: string): void
  /** Does one run, unless the time is over: such runs are not begun, and not counted. */
  run(act: () => Promise<void>): Promise<void>
}

/** What was done, and how long more may be done. */
class Tally implements Checking {
  runs = 0
  steps = 0
  readonly byKind = new Map<string, number>()
  readonly #shrinkLimitMs: number
  #endsAtMs: number
  #hasFailed = false

  constructor(timeLimitMs: number, shrinkLimitMs: number) {
    this.#endsAtMs = performance.now() + timeLimitMs
    this.#shrinkLimitMs = shrinkLimitMs
  }

  get isOver(): boolean {
    return (this.runs > 0 || this.#hasFailed) && performance.now() > this.#endsAtMs
  }

  count = (name: string): void => {
    this.steps++
    this.byKind.set(name, (this.byKind.get(name) ?? 0) + 1)
  }

  run = async (act: () => Promise<void>): Promise<void> => {
    if (this.isOver) return
    try {
      await act()
      this.runs++
    } catch (error) {
      this.#fail()
      throw error
    }
  }

  /** From the first failure on, time is for finding the shortest. */
  #fail(): void {
    if (this.#hasFailed) return
    this.#hasFailed = true
    this.#endsAtMs = performance.now() + this.#shrinkLimitMs
  }
}

/**
 * Checks a property as often as the options allow; `legend` is added to the report of a failure.
 * @throws an Error with the shortest failing run, its seed and its path.
 */
export async function runChecks<Ts>(
  name: string,
  options: ModelOptions,
  propertyOf: (checking: Checking) => fc.IRawProperty<Ts>,
  legend = ''
): Promise<ModelRuns> {
  const { timeLimitMs = 7_000, shrinkLimitMs = 20_000, runs = 1_000 } = options
  const { seed: first = Date.now() & 0x7fffffff } = options
  const tally = new Tally(timeLimitMs, shrinkLimitMs)
  const property = propertyOf(tally)
  for (let seed = first; tally.runs < runs && !tally.isOver; seed++) {
    const path = options.path === undefined ? {} : { path: options.path }
    const numRuns = Math.min(BATCH, runs - tally.runs)
    // A log often keeps the message alone: what differed has to be in it.
    const details = await fc.check(property, { seed, numRuns, includeErrorInReport: true, ...path })
    if (details.failed) {
      const report = (await fc.asyncDefaultReportMessage(details)) ?? 'the model failed'
      throw new Error(`${name}: ${report}\n${legend}`, { cause: details.errorInstance })
    }
    if (options.path !== undefined) break
  }
  const { runs: done, steps, byKind, isOver } = tally
  return { runs: done, steps, byKind, seed: first, isInterrupted: isOver }
}
