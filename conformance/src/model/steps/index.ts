/** Every kind of step, and how often a run draws it. */
import fc from 'fast-check'
import type { Step, StepKind } from '../step.js'
import { cancelledSweep, contendedSweep, maintain, remove, removeMany, sweep, verify, why } from './collecting.js'
import { brokenPut, failingPut } from './failing.js'
import { holdings, pin, protect, reference, release, sicken, unprotect } from './holding.js'
import { age, configure, damage, expire, leave, restart, second } from './opening.js'
import { commit, discard, put, write } from './putting.js'
import { abandon, failingLook, get, has, list, range, stat, usage } from './reading.js'

/** Every kind of step by its name, for runs that are written out. */
export const steps = {
  put,
  write,
  commit,
  discard,
  get,
  range,
  abandon,
  has,
  stat,
  list,
  usage,
  failingLook,
  failingPut,
  brokenPut,
  pin,
  release,
  holdings,
  protect,
  unprotect,
  reference,
  sicken,
  sweep,
  cancelledSweep,
  contendedSweep,
  delete: remove,
  deleteMany: removeMany,
  maintain,
  verify,
  why,
  second,
  restart,
  leave,
  age,
  expire,
  configure,
  damage
}

const WEIGHTS: Readonly<Record<keyof typeof steps, number>> = {
  put: 24,
  write: 3,
  commit: 3,
  discard: 1,
  get: 2,
  range: 4,
  abandon: 3,
  has: 1,
  stat: 1,
  list: 1,
  usage: 3,
  failingLook: 1,
  failingPut: 3,
  brokenPut: 2,
  pin: 4,
  release: 18,
  holdings: 1,
  protect: 4,
  unprotect: 1,
  reference: 6,
  sicken: 1,
  sweep: 20,
  cancelledSweep: 1,
  contendedSweep: 2,
  delete: 5,
  deleteMany: 1,
  maintain: 2,
  verify: 2,
  why: 2,
  second: 1,
  restart: 2,
  leave: 1,
  age: 6,
  expire: 3,
  configure: 1,
  damage: 3
}

/** Any step; `contents` is how many contents there are. */
export function anyStep(contents: number): fc.Arbitrary<Step> {
  const kinds = Object.entries(steps) as [keyof typeof steps, StepKind<object>][]
  return fc.oneof(...kinds.map(([name, kind]) => ({ weight: WEIGHTS[name], arbitrary: kind.arbitrary(contents) })))
}
