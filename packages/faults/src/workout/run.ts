/** Runs the steps of the workout, with and without faults, and looks at the world afterwards. */
import { inspect } from 'node:util'
import { PoolRefusedError, type Store } from '@alkblobs/core'
import { during } from '../during.js'
import { everyFailure } from '../every-failure.js'
import type { Fault, FaultPlan, Strike } from '../plan.js'
import { ApplicationFailure } from '../postgres/application.js'
import { type Step, SweepAborted } from './steps.js'
import type { World } from './world.js'

/** Longest that an operation of the facade may take, whatever fails under it. */
const OPERATION_LIMIT_MS = 20_000

/** An operation that did not settle within its bound. */
export class Hang extends Error {
  constructor(what: string, limitMs: number) {
    super(`${what} did not settle within ${limitMs} ms`)
    this.name = 'Hang'
  }
}

/** Brings about what the step needs; nothing may fail meanwhile. */
export async function prepare(world: World, step: Step): Promise<unknown> {
  await world.open()
  return await step.prepare?.(world)
}

/** Runs the step itself. @throws what it throws, or Hang. */
export function perform(
  world: World,
  step: Step,
  prepared: unknown,
  limitMs: number = OPERATION_LIMIT_MS
): Promise<void> {
  const work = during(step.operation, () => step.run(world, prepared))
  return bounded(`${step.operation} (${step.name})`, work, limitMs)
}

/** Runs the step and gives what it failed with, once that was found to be a failure that a user may be shown. */
export async function attempt(
  world: World,
  step: Step,
  prepared: unknown,
  limitMs?: number
): Promise<{ readonly code: string } | undefined> {
  try {
    await perform(world, step, prepared, limitMs)
    return undefined
  } catch (error) {
    assertPresentable(world, step, error)
    return error
  }
}

/** After the fault: the same operation succeeds, on the same store unless the step was about opening or closing it. */
export async function retry(world: World, step: Step, prepared: unknown): Promise<void> {
  await world.open()
  if (step.operation === 'open') await world.close()
  await perform(world, step, prepared)
  await world.open()
}

/**
 * Makes every call of the contract fail that the step brings about, one after the other; after each failure the step must have ended
 * in time, well or with a typed error, and must succeed when it is tried again. Answers where the failures struck.
 */
export async function everyFailureOf(
  world: World,
  step: Step,
  { plan, ...fault }: Omit<Fault, 'nth'> & { readonly plan: FaultPlan }
): Promise<readonly Strike[]> {
  world.forgetOld()
  return await everyFailure({ ...fault, plan, prepare: () => prepare(world, step) }, async (failure, prepared) => {
    await attempt(world, step, prepared)
    failure.heal()
    // A lease that could not be handed over or given back is gone with its store, by contract; anything else must not need another one.
    if (failure.struck.some(({ point }) => point.startsWith('catalog.lease'))) await world.close()
    await retry(world, step, prepared)
  })
}

/**
 * The oracle. Over a store that is opened anew: everything acknowledged is there, byte for byte; no entry is there without its bytes; and
 * when the time of everything that a fault left behind has run out, one round of maintenance and sweeping leaves nothing beside it. `scan`,
 * by default so: the medium may be searched for bodies that no row knows; without it there must be none.
 */
export async function assertWhole(world: World, { scan = true }: { readonly scan?: boolean } = {}): Promise<void> {
  await world.close()
  await world.open()
  const { store, subject, live } = world
  for (const [key, bytes] of live) {
    const read = await (await store.get(key))?.bytes()
    if (read === undefined) throw new Error(`an acknowledged entry is gone: ${key}`)
    if (!Buffer.from(read).equals(bytes)) throw new Error(`an acknowledged entry has other bytes: ${key}`)
  }
  // Before anything is tidied up: what was interrupted may have left stages and trash, and never half an entry.
  const half = await store.verify()
  if (half.corrupt.length + half.dangling.length > 0)
    throw new Error(`half entries: ${half.corrupt.length} corrupt, ${half.dangling.length} without their bodies`)
  await subject.expire()
  await completeFork(store)
  await store.maintain({ scan })
  for (let times = 0; times < 2; times++) {
    const { aborted, failed } = await store.sweep()
    if (aborted !== undefined || failed.length > 0) throw new Error(`the sweep ended as ${aborted ?? inspect(failed)}`)
    await subject.expire()
  }
  const { corrupt, dangling, orphans, entries } = await store.verify()
  const found = { corrupt: corrupt.length, dangling: dangling.length, orphans: orphans.length }
  const left = Object.entries({ ...found, ...(await subject.residue()) }).filter(([, count]) => count !== 0)
  if (left.length > 0) throw new Error(`left behind: ${left.map(([what, count]) => `${count} ${what}`).join(', ')}`)
  if (entries !== live.size) throw new Error(`${entries} entries are there, ${live.size} are referenced`)
}

/** A fork that was stopped half-way refuses everything but reads until its operator, who knows that the bodies are a copy, says so again. */
async function completeFork(store: Store): Promise<void> {
  try {
    await store.maintain({ scan: false })
  } catch (error) {
    if (!(error instanceof PoolRefusedError) || error.reason !== 'media') throw error
    await store.fork({ bodies: 'copied' })
  }
}

async function bounded<T>(what: string, work: Promise<T>, limitMs: number): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Hang(what, limitMs)), limitMs)
  })
  return await Promise.race([work, late]).finally(() => clearTimeout(timer))
}

/** A failure of ours: with a code of the library, and without anything secret in any corner of it. */
function assertPresentable(world: World, step: Step, error: unknown): asserts error is { readonly code: string } {
  if (error instanceof SweepAborted || error instanceof ApplicationFailure) return
  const { code } = error as { code?: unknown }
  if (error instanceof Hang || typeof code !== 'string' || !code.startsWith('ERR_BLOB_')) throw error
  const text = inspect(error, { depth: 12, showHidden: true, maxStringLength: null, maxArrayLength: null })
  for (const secret of world.secrets) {
    if (text.includes(secret)) throw new Error(`an error of ${step.operation} (${step.name}) tells a secret or content`)
  }
}
