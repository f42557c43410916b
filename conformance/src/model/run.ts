/**
 * Runs the model against a factory: random steps on a fresh pool each time, every answer compared, as long as the time lasts.
 * A failure is reported with the shortest sequence that still fails, and with what is needed to see it again.
 */
import fc from 'fast-check'
import { equal } from '../expect.js'
import { oracleOf, type StoreFactory } from '../factory.js'
import { type ModelOptions, type ModelRuns, runChecks } from './checks.js'
import type { Step } from './step.js'
import { anyStep, steps } from './steps/index.js'
import { contentsOf, type ModelSetup, World } from './world.js'

const setups: fc.Arbitrary<ModelSetup> = fc.record({
  windowDelayMs: fc.constantFrom(0, 0, 60 * 60 * 1000),
  trashDelayMs: fc.constantFrom(0, 0, 5 * 60 * 1000),
  pageLimit: fc.constantFrom(undefined, 1, 2, 3),
  isProtected: fc.constantFrom(true, true, true, false)
})

/** The world stands in for the model: what a step may do depends on the store's state as the model has it. */
class StepCommand implements fc.AsyncCommand<World, World> {
  readonly #step: Step
  readonly #count: (name: string) => void

  constructor(step: Step, count: (name: string) => void) {
    this.#step = step
    this.#count = count
  }

  check(world: Readonly<World>): boolean {
    return this.#step.canRun(world as World)
  }

  async run(world: World): Promise<void> {
    await this.#step.run(world)
    this.#count(this.#step.name)
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

/**
 * Holds the stores of a factory against the model, and answers how much was tried.
 * @throws the first difference, with the steps that lead to it, seed and path.
 */
export function runModel(factory: StoreFactory, options: ModelOptions = {}): Promise<ModelRuns> {
  const { stepsMax = 60, replayPath } = options
  const replayed = replayPath === undefined ? {} : { replayPath }
  return runChecks(
    factory.name,
    options,
    ({ count, run }) => {
      const command = anyStep(contentsOf(factory).length).map(step => new StepCommand(step, count))
      const commands = fc.commands([command], { maxCommands: stepsMax, size: 'max', ...replayed })
      return fc.asyncProperty(setups, commands, (setup, sequence) =>
        run(() =>
          onFreshPool(factory, setup, world => fc.asyncModelRun(() => ({ model: world, real: world }), sequence))
        )
      )
    },
    legend(factory)
  )
}

/** What the numbers of contents stand for. */
function legend(factory: StoreFactory): string {
  return contentsOf(factory)
    .map(({ bytes, key }, number) => `content ${number}: ${bytes.length} bytes, ${key}`)
    .join('\n')
}
