/**
 * The database of one open store, and the one question that makes absence trustworthy: is this still our medium?
 *
 * Every statement that may find nothing asks for the claim in the same breath. A body is `gone` only where the claim is there and
 * names the pool; a schema that went away, a database restored from elsewhere, a claim removed by hand: nothing is known then, and
 * the failure is transient.
 */
import { type Algorithm, type Call, type Claim, EngineFault, type PoolId } from '@alkblobs/core/engine'
import type { Param, Session, Sessions, Statement, Value } from '@alkblobs/postgres-session'
import type { Holder } from './bodies/holder.js'
import { sqlStateOf } from './classify.js'
import type { Tables } from './schema.js'

export interface Medium {
  /** For everything but the session of an exclusive claim. */
  readonly sessions: Sessions
  /** For that one: it must not wait for, or take, a place that bodies need. */
  readonly holderSessions: Sessions
  readonly schema: string
  readonly tables: Tables
  readonly algorithm: Algorithm
  readonly stageIdleTimeoutMs: number
  /** Whose database this was when it was first looked at, and must be whenever something is said to be gone. */
  poolId: PoolId | undefined
  /** What this store claimed; `undefined` before. */
  claim: Claim | undefined
  /** Keeps an exclusive claim. */
  holder: Holder | undefined
}

/** After its signal or its deadline a call begins nothing new (ENG-4). */
export function checkCall(call: Call): void {
  call.signal?.throwIfAborted()
  if (performance.now() > call.deadlineMs) throw new EngineFault('transient', 'the deadline passed')
}

/** Writing and dropping need a claim: without one nobody knows whose bodies these are. */
export async function checkClaimed(medium: Medium, call: Call): Promise<void> {
  if (medium.claim === undefined) throw new EngineFault('foreign', 'the schema was not claimed by this store')
  await medium.holder?.ensure(call)
}

/**
 * Runs one statement whose rows begin with the pool id of the claim, and answers the rest of each row; at least one, for it
 * reads from the claim. It may be said twice, where the first session turns out to be dead.
 * @throws EngineFault `transient` if the claim is not there or is another pool's.
 */
export async function ask<Row extends readonly Value[]>(
  medium: Medium,
  call: Call,
  statement: string,
  params: readonly Param[] = []
): Promise<Row[]> {
  checkCall(call)
  return believed(
    medium,
    medium.sessions.ask(call, session => session.rows<[PoolId, ...Row]>(statement, params))
  )
}

/** The same in binary form. */
export async function askBinary(medium: Medium, call: Call, statement: Statement): Promise<(Buffer | null)[][]> {
  checkCall(call)
  const asked = medium.sessions.ask(call, session => session.binaryRows(statement))
  return believed(
    medium,
    asked.then(rows => rows.map(([poolId, ...rest]) => [String(poolId) as PoolId, ...rest] as const))
  )
}

/** The same for a statement that must not be said twice. */
export async function tell<Row extends readonly Value[]>(
  medium: Medium,
  call: Call,
  statement: string,
  params: readonly Param[]
): Promise<Row[]> {
  checkCall(call)
  return believed(
    medium,
    medium.sessions.use(call, session => session.rows<[PoolId, ...Row]>(statement, params))
  )
}

async function believed<Row extends readonly (Value | null)[]>(
  medium: Medium,
  rows: Promise<(readonly [PoolId, ...Row])[]>
): Promise<Row[]> {
  const found = await rows.catch(missingIsAway)
  const [first] = found
  if (first === undefined) throw away('its claim is gone')
  confirm(medium, first[0])
  return found.map(([, ...rest]) => rest as unknown as Row)
}

/** @throws EngineFault `transient` unless the claim that was found is that of the pool this store has seen. */
export function confirm(medium: Medium, poolId: PoolId): void {
  // A store that opened before there was a claim believes the first one that it meets.
  medium.poolId ??= poolId
  if (poolId !== medium.poolId) throw away('it is claimed by another pool')
}

/** The claim must be this store's until the transaction ends; an exclusive one is locked, so that nobody takes it meanwhile. */
export async function confirmIn(medium: Medium, session: Session): Promise<void> {
  const { holder, tables } = medium
  const [row] = await session.rows<[PoolId, string]>(
    `SELECT pool_id, fence::text FROM ${tables.claim}${holder === undefined ? '' : ' FOR SHARE'}`
  )
  if (row === undefined) throw away('its claim is gone')
  confirm(medium, row[0])
  if (holder !== undefined && row[1] !== holder.fence) {
    throw new EngineFault('conflict', 'another process took this in-memory pool over; open the store again')
  }
}

export function away(why: string, cause?: unknown): EngineFault {
  return new EngineFault('transient', `the medium is away: ${why}`, cause)
}

/** Tables that are not there say nothing about bodies. */
export function missingIsAway(error: unknown): never {
  const state = sqlStateOf(error)
  throw state === '42P01' || state === '3F000' ? away('its tables are gone', error) : error
}
