/**
 * Runs the model against a factory: random steps on a fresh pool each time, every answer compared, as long as the time lasts.
 * A failure is reported with the shortest sequence that still fails, and with what is needed to see it again.
 */
import fc from 'fast-check'
import { equal } from '../expect.js'
import { oracleOf, type StoreFactory } from '../factory.js'
import type { Step } from './step.js'
import { anyStep, steps } from './steps/index.js'
import { contentsOf, type ModelSetup, World } from './world.js'

export interface ModelOptions {
  /** Most runs; each has a pool of its own. Default 1000. */
  readonly runs?: number
  /** When no further run is begun, in milliseconds. Default 7000. */
  readonly timeLimitMs?: number
  /** Most steps of a run. Default 60. */
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

const setups: fc.Arbitrary<ModelSetup> = fc.record({
  windowDelayMs: fc.constantFrom(0, 0, 60 * 60 * 1000),
  trashDelayMs: fc.constantFrom(0, 0, 5 * 60 * 1000),
  pageLimit: fc.constantFrom(undefined, 1, 2, 3),
  isProtected: fc.constantFrom(true, true, true, false)
})

/** What was done, and how long more may be done. */
class Tally {
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

  /** From the first failure on, time is for finding the shortest. */
  fail(): void {
    if (this.#hasFailed) return
    this.#hasFailed = true
    this.#endsAtMs = performance.now() + this.#shrinkLimitMs
  }

  count(name: string): void {
    this.steps++
    this.byKind.set(name, (this.byKind.get(name) ?? 0) + 1)
  }
}

/** The world stands in for the model: what a step may do depends on the store's state as the model has it. */
class StepCommand implements fc.AsyncCommand<World, World> {
  readonly #step: Step
  readonly #tally: Tally

  constructor(step: Step, tally: Tally) {
    this.#step = step
    this.#tally = tally
  }

  check(world: Readonly<World>): boolean {
    return this.#step.canRun(world as World)
  }

  async run(world: World): Promise<void> {
    await this.#step.run(world)
    this.#tally.count(this.#step.name)
  }

  toString(): string {
    return `${this.#step.name}(${JSON.stringify(this.#step.args)})`
  }
}

/** What must hold when all is over: nothing is held, and what nobody references goes, without anything left on the medium. */
export async function finish(world: World): Promise<void> {
  const { pool, factory } = world
  for (const { model, writer } of world.writers) {
    if (model.isOver) continue
    model.isOver = true
    model.stageExpiresAtMs = undefined
    await writer.discard()
  }
  for (let nth = 0; nth < world.handedOut.length; nth++) await steps.release.with({ nth, which: 'any' }).run(world)
  await steps.holdings.with({}).run(world)
  await steps.usage.with({ by: 0 }).run(world)
  await steps.verify.with({ by: 0, repair: false }).run(world)
  await steps.list.with({ by: 0, after: undefined }).run(world)
  if (!factory.traits.includes('medium')) return
  const { inlineEntries, bodies, window, trash, pins } = await oracleOf(factory, world.at(0).store).counts()
  const expected = {
    inlineEntries: [...pool.entries.values()].filter(({ tier }) => tier === 'kv').length,
    bodies: pool.bodies(),
    window: pool.window.size,
    trash: pool.trash.length,
    pins: [...pool.pins.values()].reduce((sum, rows) => sum + rows.size, 0)
  }
  equal({ inlineEntries, bodies, window, trash, pins }, expected, 'the medium holds what the model holds')
}

/** Carries out steps that are written out, on a fresh pool: the form a failure is kept in as a regression test. */
export async function replayModel(
  factory: StoreFactory,
  setup: Partial<ModelSetup>,
  sequence: readonly Step[]
): Promise<void> {
  const whole = { windowDelayMs: 0, trashDelayMs: 0, pageLimit: undefined, isProtected: true, ...setup }
  await onFreshPool(factory, whole, async world => {
    for (const step of sequence) if (step.canRun(world)) await step.run(world)
  })
}

async function onFreshPool(factory: StoreFactory, setup: ModelSetup, act: (world: World) => Promise<void>) {
  let world: World | undefined
  try {
    world = await World.begin(factory, setup)
    if (setup.isProtected) await steps.protect.with({ by: 0, kind: 'live', contents: [] }).run(world)
    await act(world)
    await finish(world)
  } finally {
    await world?.bury()
    await factory.teardown()
  }
}

/** Runs of one check: they share a seed. */
const BATCH = 25

/**
 * Holds the stores of a factory against the model, and answers how much was tried.
 * @throws the first difference, with the steps that lead to it, seed and path.
 */
export async function runModel(factory: StoreFactory, options: ModelOptions = {}): Promise<ModelRuns> {
  const { timeLimitMs = 7_000, shrinkLimitMs = 20_000, runs = 1_000 } = options
  const { seed: first = Date.now() & 0x7fffffff } = options
  const tally = new Tally(timeLimitMs, shrinkLimitMs)
  const property = propertyOf(factory, options, tally)
  let seed = first
  for (; tally.runs < runs && !tally.isOver; seed++) {
    const path = options.path === undefined ? {} : { path: options.path }
    const details = await fc.check(property, { seed, numRuns: Math.min(BATCH, runs - tally.runs), ...path })
    if (details.failed) {
      const report = (await fc.asyncDefaultReportMessage(details)) ?? 'the model failed'
      throw new Error(`${factory.name}: ${report}\n${legend(factory)}`, { cause: details.errorInstance })
    }
    if (options.path !== undefined) break
  }
  const { runs: done, steps: carriedOut, byKind, isOver } = tally
  return { runs: done, steps: carriedOut, byKind, seed: first, isInterrupted: isOver }
}

/** What the numbers of contents stand for. */
function legend(factory: StoreFactory): string {
  return contentsOf(factory)
    .map(({ bytes, key }, number) => `content ${number}: ${bytes.length} bytes, ${key}`)
    .join('\n')
}

function propertyOf(factory: StoreFactory, { stepsMax = 60, replayPath }: ModelOptions, tally: Tally) {
  const command = anyStep(contentsOf(factory).length).map(step => new StepCommand(step, tally))
  const replayed = replayPath === undefined ? {} : { replayPath }
  const commands = fc.commands([command], { maxCommands: stepsMax, size: 'max', ...replayed })
  return fc.asyncProperty(setups, commands, async (setup, sequence) => {
    // Runs that the time has no room for are not begun; the tally says how many were.
    if (tally.isOver) return
    try {
      await onFreshPool(factory, setup, world => fc.asyncModelRun(() => ({ model: world, real: world }), sequence))
      tally.runs++
    } catch (error) {
      tally.fail()
      throw error
    }
  })
}
