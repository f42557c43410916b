/** Which calls of the contract each step brings about, and which of them have to be struck so that every surface is. */
import type { FaultPlan, Strike } from '../plan.js'
import type { FaultPoint } from '../points.js'
import { surfacesAt } from '../surfaces.js'
import { perform, prepare } from './run.js'
import type { Step } from './steps.js'
import type { World } from './world.js'

/** One call of one step. */
export interface Target {
  readonly step: Step
  readonly point: FaultPoint
  readonly engine: string
}

/** Runs every step undisturbed, and answers each kind of call that it made when it was run again, once. */
export async function trace(world: World, plan: FaultPlan, steps: readonly Step[]): Promise<readonly Target[]> {
  const targets = new Map<string, Target>()
  // Calls of the first time alone, such as those that make a pool, do not come again and could not be struck later.
  for (const step of steps) await perform(world, step, await prepare(world, step))
  for (const step of steps) {
    const prepared = await prepare(world, step)
    const stop = plan.watch(({ point, engine, operation }) => {
      if (operation === step.operation)
        targets.set(`${step.operation} ${step.name} ${point} ${engine}`, { step, point, engine })
    })
    await perform(world, step, prepared)
    stop()
  }
  await world.open()
  return [...targets.values()]
}

/** Whether a call is the one that a target means. */
export function isAt({ step, point, engine }: Target): (at: Strike) => boolean {
  return at => at.point === point && at.engine === engine && at.operation === step.operation
}

/** The surfaces that a fault strikes there. */
export function surfacesOf({ point, step }: Target): readonly string[] {
  return surfacesAt(point, step.operation)
}

/**
 * Strikes few targets, those first that cover most, until every surface that one of them can strike was struck. A call that did not come
 * again (a pin that is let go of in the background is nobody's step) is left for another one of its surfaces. Answers what was never struck.
 */
export async function cover(
  targets: readonly Target[],
  strike: (target: Target) => Promise<boolean>
): Promise<readonly string[]> {
  const squares = (target: Target) => surfacesOf(target).map(surface => `${surface} of ${target.engine}`)
  const left = new Set(targets.flatMap(squares))
  const untried = new Set(targets)
  const gain = (target: Target) => squares(target).filter(square => left.has(square)).length
  while (left.size > 0) {
    const best = [...untried].reduce<Target | undefined>((one, other) => {
      return gain(other) > (one === undefined ? 0 : gain(one)) ? other : one
    }, undefined)
    if (best === undefined) break
    untried.delete(best)
    if (await strike(best)) for (const square of squares(best)) left.delete(square)
  }
  return [...left]
}
