/** A step: one command of a run, its arguments drawn or written out, acted out on the store and held against the model. */
import fc from 'fast-check'
import type { World } from './world.js'

/** One command with its arguments. */
export interface Step {
  readonly name: string
  readonly args: object
  /** Whether it makes sense now; one that does not is left out of the run. */
  canRun(world: World): boolean
  /** Acts, and fails unless the store did what the model says. */
  run(world: World): Promise<void>
}

interface StepDraft<Args extends object> {
  readonly name: string
  /** Arguments as a run draws them; `contents` is how many there are. */
  args(contents: number): fc.Arbitrary<Args>
  /**
   * Whether it is indifferent to releases that have not reached the catalog yet. Before every other step they are sent, since
   * when they arrive by themselves is nobody's promise.
   */
  readonly toleratesReleases?: boolean
  canRun?(world: World, args: Args): boolean
  run(world: World, args: Args): Promise<void>
}

/** A kind of step: drawn by a run, or written out in a regression test. */
export interface StepKind<Args extends object> {
  readonly name: string
  with(args: Args): Step
  arbitrary(contents: number): fc.Arbitrary<Step>
}

/** Completes a kind of step. */
export function stepKind<Args extends object>(draft: StepDraft<Args>): StepKind<Args> {
  const { name, toleratesReleases = false } = draft
  const made = (args: Args): Step => ({
    name,
    args,
    canRun: world => draft.canRun?.(world, args) ?? true,
    async run(world) {
      const { by, other } = args as { readonly by?: number; readonly other?: number }
      if (!toleratesReleases) await world.settle([by, other].filter(number => number !== undefined))
      await draft.run(world, args)
    }
  })
  return { name, with: made, arbitrary: contents => draft.args(contents).map(made) }
}

/** Whom a step is done by: the first store mostly, sometimes another that is open. */
export const stores = fc.constantFrom(0, 0, 0, 1)

/** A content by its number: mostly one of the first two, so that steps meet. */
export const contentNumbers = (contents: number) => {
  const upTo = (max: number) => fc.nat({ max: Math.min(max, contents - 1) })
  return fc.oneof(
    { weight: 4, arbitrary: upTo(1) },
    { weight: 2, arbitrary: upTo(3) },
    { weight: 1, arbitrary: upTo(contents) }
  )
}

/** One in ten is the rare value. */
export const rarely = <T>(rare: T, ...usual: readonly T[]): fc.Arbitrary<T> =>
  fc.oneof({ weight: 9, arbitrary: fc.constantFrom(...usual) }, { weight: 1, arbitrary: fc.constant(rare) })
