// What the tests of this package share: a database for each test, calls, bodies written in one go, and the count after each
// test that no large object is without its row.
import { createHash, randomBytes } from 'node:crypto'
import type { BlobKey, BodyStore, Call, Claim, Engine, Locator, PoolId, StageId } from '@alkblobs/core/engine'
import { formatKey } from '@alkblobs/core/engine'
import { freshDatabase, noServer, type TestDatabase } from '@alkblobs/testkit'
import { afterEach, describe, expect } from 'vitest'
import { type PgloConfig, pglo } from '../src/index.js'

export const call: Call = { deadlineMs: Number.POSITIVE_INFINITY }
export const within = (ms: number): Call => ({ deadlineMs: performance.now() + ms })
export const context = { algorithm: 'sha256', lockTimeoutMs: 5_000, connectTimeoutMs: 10_000 } as const
export const shared: Claim = { poolId: 'pool-1' as PoolId, mode: 'shared' }
export const exclusive: Claim = { poolId: 'pool-1' as PoolId, mode: 'exclusive' }
export const MIB = 1024 * 1024

/** Tests that need the server of the run, skipped with the reason where there is none. */
export function onServer(name: string, tests: () => void): void {
  const reason = noServer()
  if (reason === undefined) describe(name, tests)
  else describe.skip(`${name} (skipped: ${reason})`, tests)
}

const leftovers: (() => Promise<unknown>)[] = []
afterEach(async () => {
  for (const end of leftovers.splice(0).reverse()) await end()
})
export const atEnd = (end: () => Promise<unknown>) => leftovers.push(end)

/** A database of the test's own. At its end no object may be without a row, whatever the test did. */
export async function database(): Promise<TestDatabase> {
  const made = await freshDatabase()
  atEnd(() => made.drop())
  atEnd(async () => expect(await withoutRow(made)).toBe(0))
  return made
}

export interface Opened {
  readonly engine: Engine
  readonly bodies: BodyStore
}

export async function open({ url }: { readonly url: string }, config: Partial<PgloConfig> = {}): Promise<Opened> {
  const engine = await pglo({ url, schema: 'lo', ...config }).open(context)
  let isOpen = true
  const close = async () => {
    if (isOpen) await engine.close()
    isOpen = false
  }
  atEnd(close)
  return { engine: { ...engine, close }, bodies: engine.bodies as BodyStore }
}

/** The same, claimed. */
export async function claimed(db: { readonly url: string }, config: Partial<PgloConfig> = {}): Promise<Opened> {
  const opened = await open(db, config)
  expect(await opened.bodies.claim(shared, call)).toEqual(shared)
  return opened
}

export const newStage = () => randomBytes(16).toString('hex') as StageId
export const keyOf = (bytes: Uint8Array): BlobKey => formatKey('sha256', createHash('sha256').update(bytes).digest())
export const pattern = (length: number) =>
  Buffer.from(Uint8Array.from({ length }, (_, at) => (at * 31 + (at >> 8) + (at >> 16)) & 255))

/** Writes one body in the chunks given and seals it. */
export async function putBody(bodies: BodyStore, chunks: readonly Uint8Array[], stage = newStage()): Promise<Locator> {
  const bytes = Buffer.concat(chunks)
  const writer = await bodies.create(stage, { length: bytes.length }, call)
  try {
    for (const chunk of chunks) await writer.write(chunk)
    return await writer.seal(keyOf(bytes))
  } catch (error) {
    await writer.discard()
    throw error
  }
}

/** Drops until nobody is in the way any more: what another was writing or dropping is to be asked for again. */
export async function dropAll({ engine, bodies }: Opened, what: readonly (Locator | StageId)[]): Promise<void> {
  let left = what
  await eventually(async () => {
    const results = await bodies.drop(left, call)
    expect(results.map(result => result.what)).toEqual(left)
    const failed = results.filter(({ error }) => error !== undefined)
    expect(new Set(failed.map(({ error }) => engine.classify(error)))).toEqual(new Set(failed.map(() => 'conflict')))
    left = failed.map(result => result.what)
    return left.length === 0
  })
}

export async function readRange(bodies: BodyStore, locator: Locator, start = 0, end = 2 ** 40): Promise<Buffer> {
  const chunks: Uint8Array[] = []
  for await (const chunk of bodies.read(locator, { start, end }, call)) chunks.push(chunk)
  return Buffer.concat(chunks)
}

export async function count(db: TestDatabase, text: string): Promise<number> {
  const [row] = await db.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${text}`)
  return row?.n as number
}

export const objects = (db: TestDatabase) => count(db, 'pg_largeobject_metadata')
export const rows = (db: TestDatabase) => count(db, 'lo.lo_entries')

/** Objects that no row names; without the table that is every object. */
async function withoutRow(db: TestDatabase): Promise<number> {
  const [there] = await db.query<{ found: boolean }>("SELECT to_regclass('lo.lo_entries') IS NOT NULL AS found")
  if (there?.found !== true) return objects(db)
  return count(db, 'pg_largeobject_metadata m WHERE NOT EXISTS (SELECT FROM lo.lo_entries e WHERE e.loid = m.oid)')
}

/** The sessions of the engines in the database, in the state given. */
export function backends(db: TestDatabase, state: string): Promise<{ pid: number }[]> {
  return db.query<{ pid: number }>(
    `SELECT pid FROM pg_stat_activity
     WHERE datname = current_database() AND application_name <> 'alkblobs-testkit' AND state = $1`,
    [state]
  )
}

/** The session of the one body under way, once it waits for its producer. */
export async function waitingWriter(db: TestDatabase): Promise<number> {
  await eventually(async () => (await backends(db, 'idle in transaction')).length === 1)
  return (await backends(db, 'idle in transaction'))[0]?.pid as number
}

/** The session that holds an exclusive claim, if there is one and no other call is under way. */
export async function holder(db: TestDatabase): Promise<number | undefined> {
  // The server shows the locks of all its databases.
  const [row] = await db.query<{ pid: number }>(
    `SELECT pid FROM pg_locks WHERE locktype = 'advisory'
       AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`
  )
  return row?.pid
}

/** A server that is slow because the machine is busy is given so long before the test says that it never came. */
const PATIENCE_MS = 20_000

/** Ends a session as an administrator would, and waits until it is gone. */
export async function terminate(db: TestDatabase, pid: number): Promise<void> {
  const ask = 'SELECT pg_terminate_backend($1::int, $2::bigint) AS done'
  const [row] = await db.query<{ done: boolean }>(ask, [pid, PATIENCE_MS])
  expect(row?.done).toBe(true)
}

export async function eventually(look: () => Promise<boolean>, ms = PATIENCE_MS): Promise<void> {
  const end = performance.now() + ms
  while (!(await look())) {
    if (performance.now() > end) throw new Error(`it did not happen within ${ms} ms`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

/**
 * Settles as the promise does, and fails unless that happens within this time as the event loop counts it: timers of one loop
 * fire in their order, however late a busy machine lets them.
 */
export async function sooner<T>(ms: number, promise: Promise<T>): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`it was not settled after ${ms} ms`)), ms)
  })
  return Promise.race([promise, late]).finally(() => clearTimeout(timer))
}

/** What the failure of a promise is called, or `undefined` if it does not fail. */
export async function failure(engine: Engine, promise: Promise<unknown>): Promise<string | undefined> {
  try {
    await promise
    return undefined
  } catch (error) {
    return engine.classify(error)
  }
}
