/** Walks one schedule, from its first step to the end of everything, as a chooser says. */
import { rest } from './ambient.js'
import { maintain, sweep } from './operations.js'
import type { Run } from './run.js'
import type { Step } from './world.js'

/** Picks the next step, by its place in the list; `undefined` ends the walk here. */
export type Chooser = (steps: readonly Step[], depth: number, run: Run) => number | undefined

export interface Walk {
  /** Steps taken. */
  readonly depth: number
  /** Whether the walk was ended before the schedule was. */
  readonly isCut: boolean
}

/** Walks on from `known` steps that an earlier walk has taken, and looked at. */
export async function walk(run: Run, choose: Chooser, known = 0): Promise<Walk> {
  const { world, invariants } = run
  for (let depth = 0; ; depth++) {
    if (world.violations.length > 0) return { depth, isCut: false }
    const { steps } = world
    const chosen = choose(steps, depth, run)
    if (chosen === undefined) return { depth, isCut: true }
    const step = steps[chosen]
    if (step === undefined) {
      if (run.isUnderWay) world.violate('an operation never ends: nothing waits, and somebody still runs')
      else await finish(run)
      return { depth, isCut: false }
    }
    world.take(step.id)
    await rest()
    if (depth < known) invariants.follow()
    else invariants.after(step)
  }
}

/** Longer than anything lives by itself: marks of deletes live longest. */
const DAY_MS = 25 * 60 * 60_000

/** Everybody lets go, every time runs out, sweeps and maintenance come by: then nothing dead may be left. */
async function finish(run: Run): Promise<void> {
  const { world, holds, stores, invariants } = run
  world.open()
  for (const { who, pin } of holds) await world.as(who, () => pin.release())
  holds.clear()
  await rest()
  await rest()
  world.clockMs += DAY_MS
  const [who] = [...stores.keys()].filter(name => !world.hasEnded(name))
  if (who === undefined) return
  const actor = run.actorOf(who)
  // Every stage runs out in the first, what it left is dropped; a durable candidate is staged by one sweep, executed by the next.
  for (const operation of [maintain(), sweep(), sweep(), sweep(), maintain()]) {
    await world.as(who, () => operation.run(actor))
    await rest()
    world.clockMs += DAY_MS
  }
  invariants.atEnd(isExact(run))
}

/** Whether every sweep told what it did: one whose process ended, or that waited no longer, did not. */
function isExact({ configuration: { events = [] } }: Run): boolean {
  return !events.some(({ kind }) => kind === 'crash' || kind === 'deadline missed')
}
