/** Runs the models of a catalog and of a body store against an engine itself, without a store around it. */
import fc from 'fast-check'
import { type ModelOptions, type ModelRuns, runChecks } from '../checks.js'
import { anyBodyStep, type BodiesUnderTest, BodiesWorld, expectScan } from './body-steps.js'
import { lookingSteps } from './catalog-looking-steps.js'
import { writingSteps } from './catalog-steps.js'
import { sweepingSteps } from './catalog-sweep-steps.js'
import { type CatalogUnderTest, CatalogWorld, HOUR_MS } from './catalog-world.js'

/** A step of either kind, as fast-check takes it. */
interface Steplike<World> {
  canRun(world: World): boolean
  run(world: World): Promise<void>
  toString(): string
}

const commandOf = <World extends object>(
  step: Steplike<World>,
  count: (name: string) => void
): fc.AsyncCommand<World, World> => ({
  check: world => step.canRun(world as World),
  async run(world) {
    await step.run(world)
    count(step.toString().replace(/\(.*/s, ''))
  },
  toString: () => step.toString()
})

const DEFAULT_STEPS = 50

/**
 * Holds catalogs over one medium against the model; `open` gives a virgin medium each time, opened once or more often.
 * @throws the first difference, with the steps that lead to it, seed and path.
 */
export function runCatalogModel(open: () => Promise<CatalogUnderTest>, options: ModelOptions = {}): Promise<ModelRuns> {
  const step = fc.oneof(...writingSteps, ...sweepingSteps, ...lookingSteps)
  return runChecks('catalog', options, ({ count, run }) =>
    fc.asyncProperty(
      fc.constantFrom(0, HOUR_MS),
      fc.commands([step.map(each => commandOf(each, count))], commandsOf(options)),
      (windowDelayMs, sequence) =>
        run(async () => {
          const opened = await open()
          try {
            const world = await CatalogWorld.begin(opened, windowDelayMs)
            await fc.asyncModelRun(() => ({ model: world, real: world }), sequence)
            await world.lease?.held.release()
          } finally {
            await opened.close()
          }
        })
    )
  )
}

/**
 * Holds a body store against the model; `open` gives a virgin medium each time.
 * @throws the first difference, with the steps that lead to it, seed and path.
 */
export function runBodiesModel(open: () => Promise<BodiesUnderTest>, options: ModelOptions = {}): Promise<ModelRuns> {
  return runChecks('bodies', options, ({ count, run }) =>
    fc.asyncProperty(fc.commands([anyBodyStep.map(each => commandOf(each, count))], commandsOf(options)), sequence =>
      run(async () => {
        const opened = await open()
        let world: BodiesWorld | undefined
        try {
          const begun = await BodiesWorld.begin(opened)
          world = begun
          await fc.asyncModelRun(() => ({ model: begun, real: begun }), sequence)
          await begun.discardAll()
          await expectScan(begun, 3)
        } finally {
          await world?.discardAll()
          await opened.close()
        }
      })
    )
  )
}

function commandsOf({ stepsMax = DEFAULT_STEPS, replayPath }: ModelOptions) {
  return { maxCommands: stepsMax, size: 'max', ...(replayPath === undefined ? {} : { replayPath }) } as const
}
