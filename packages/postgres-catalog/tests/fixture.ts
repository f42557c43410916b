/** A pool in a schema of its own for each test, and short names for what tests say often. */
import { randomBytes } from 'node:crypto'
import {
  type BlobKey,
  type Call,
  type Catalog,
  formatKey,
  type Lease,
  type Locator,
  type Owner,
  type PinRow,
  type PoolId,
  type PoolRecord,
  PROTOCOL_VERSION,
  type Publication,
  type StageId
} from '@alkblobs/core/engine'
import { type Param, Sessions } from '@alkblobs/postgres-session'
import { freshSchema, noServer, type TestSchema } from '@alkblobs/testkit'
import { describe, expect, onTestFinished } from 'vitest'
import { openCatalog } from '../src/index.js'

export const HOUR = 3_600_000
export const OWNER = 'owner-a' as Owner
export const OTHER = 'owner-b' as Owner

const reason = noServer()
/** Tests of a real server: skipped with the reason where none can be had. */
export const describeServer = (name: string, tests: () => void) =>
  describe.skipIf(reason !== undefined)(reason === undefined ? name : `${name} (${reason})`, tests)

export const record: PoolRecord = {
  poolId: 'pool-1' as PoolId,
  protocol: PROTOCOL_VERSION,
  algorithm: 'blake3',
  windowDelayMs: 0,
  bodiesClaimed: false
}

export const call = (ms = 10_000, signal?: AbortSignal): Call => ({
  deadlineMs: performance.now() + ms,
  ...(signal && { signal })
})

/** A server that is slow because the machine is busy is given so long before the test says that it never came. */
const PATIENCE_MS = 20_000

/** Waits until it is so. */
export async function eventually(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; !(await isSo()); await sleep(10)) {
    if (performance.now() > end) throw new Error(`it never came to this: ${what}`)
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

/** Ends a session as an administrator would, and waits until the server is rid of it. */
export async function terminate({ query }: Pick<TestSchema, 'query'>, pid: number): Promise<void> {
  const [row] = await query<{ gone: boolean }>('SELECT pg_terminate_backend($1::int, $2::bigint) AS gone', [
    pid,
    PATIENCE_MS
  ])
  expect(row?.gone).toBe(true)
}

/** The sessions of the pool, by the name that `openPool` gives them, in a state. */
export async function sessionsOf({ schema, query }: TestSchema, condition: string): Promise<number[]> {
  const ask = `SELECT pid FROM pg_stat_activity WHERE application_name = $1 AND ${condition}`
  return (await query<{ pid: number }>(ask, [schema])).map(({ pid }) => pid)
}

/** The one session of the pool that is in such a state, once there is one. */
export async function sessionWhere(at: TestSchema, condition: string): Promise<number> {
  let pids: number[] = []
  await eventually(condition, async () => {
    pids = await sessionsOf(at, condition)
    return pids.length > 0
  })
  expect(pids).toHaveLength(1)
  return pids[0] as number
}

/** A schema that does not exist yet and goes with the test. */
export async function place(): Promise<TestSchema> {
  const made = await freshSchema()
  onTestFinished(() => made.drop())
  return made
}

interface Settings {
  readonly lockTimeoutMs?: number
  readonly poolMax?: number
  readonly url?: string
}

/** A catalog over a schema that may hold anything; its sessions end before the schema goes. */
export async function openSchema(at: Pick<TestSchema, 'url' | 'schema'>, settings: Settings = {}) {
  const { lockTimeoutMs = 2_000, poolMax = 6, url = at.url } = settings
  const sessions = new Sessions(
    { url, poolMax, applicationName: at.schema },
    { connectTimeoutMs: 10_000, lockTimeoutMs }
  )
  onTestFinished(() => sessions.close())
  const options = { schema: at.schema, algorithm: 'blake3', lockTimeoutMs, inlineLengthMax: 2 ** 24, poolMax } as const
  const { catalog, endLeases } = await openCatalog(sessions, options, call())
  return {
    catalog,
    sessions,
    async close() {
      await endLeases()
      await sessions.close()
    }
  }
}

/** A pool that is there. */
export async function openPool(settings: Settings & { at?: TestSchema; windowDelayMs?: number } = {}) {
  const { at = await place(), windowDelayMs = 0, ...rest } = settings
  const opened = await openSchema(at, rest)
  await opened.catalog.meta.compareAndSet(undefined, { ...record, windowDelayMs }, call())
  const sql = <R extends Record<string, unknown> = Record<string, unknown>>(
    text: string,
    ...values: (string | number | Uint8Array)[]
  ) => at.query<R>(text.replaceAll('$.', `${at.schema}.`), values)
  return { at, ...opened, sql }
}

/** A session of somebody else's, to hold locks and transactions open with. */
export async function stranger(at: TestSchema) {
  const sessions = new Sessions({ url: at.url, poolMax: 2 }, { connectTimeoutMs: 10_000, lockTimeoutMs: 20_000 })
  onTestFinished(() => sessions.close())
  const session = await sessions.hold(call())
  return {
    pid: session.pid,
    /** Resolves once so many sessions wait for a lock that this one holds. */
    blocks: (count = 1) =>
      eventually(`${count} wait`, async () => {
        const waiting = 'SELECT 1 FROM pg_stat_activity WHERE $1::int = ANY (pg_blocking_pids(pid))'
        return (await at.query(waiting, [session.pid])).length >= count
      }),
    begin: () => session.begin(call()),
    commit: () => session.commit(call()),
    rollback: () => session.rollback(call()),
    say: (text: string, values: readonly Param[] = []) => session.rows(text.replaceAll('$.', `${at.schema}.`), values)
  }
}

export async function leaseOf(catalog: Catalog): Promise<Lease> {
  const lease = await catalog.lease(call())
  if (!lease) throw new Error('no lease')
  return lease
}

export function keyOf(n: number): BlobKey {
  return formatKey('blake3', digest(n))
}

export function digest(n: number): Buffer {
  const bytes = Buffer.alloc(32)
  bytes.writeUInt32BE(n)
  return bytes
}

/** As a lease takes live keys. */
export const digestsOf = (numbers: readonly number[]): Uint8Array => Buffer.concat(numbers.map(digest))

export const stageOf = (n: number) => n.toString(16).padStart(32, '0') as StageId
export const locatorOf = (n: number) => `${stageOf(n)}.sealed` as Locator
export const pinOf = (generation = 1, owner = OWNER): PinRow => ({ owner, generation })

export function inline(n: number, body: Uint8Array = randomBytes(100), more: Partial<Publication> = {}): Publication {
  return { key: keyOf(n), length: body.byteLength, bytes: { kind: 'inline', body }, trashDelayMs: 0, ...more }
}

export function staged(n: number, stage = n, more: Partial<Publication> = {}): Publication {
  const bytes = { kind: 'staged', stage: stageOf(stage), locator: locatorOf(stage) } as const
  return { key: keyOf(n), length: 1_000_000, bytes, trashDelayMs: 0, ...more }
}

export const byKey = (n: number, more: Partial<Publication> = {}): Publication => ({
  key: keyOf(n),
  length: 100,
  bytes: { kind: 'none' },
  trashDelayMs: 0,
  ...more
})

export const pinned = (ttlMs = HOUR, row = pinOf()) => ({ pin: { row, ttlMs } })

export const sleep = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))

/** The kind of failure a promise ends with, or `resolved`. */
export async function failure(promise: Promise<unknown>): Promise<string> {
  const { classifyPostgres } = await import('@alkblobs/postgres-session')
  return promise.then(
    () => 'resolved',
    error => classifyPostgres(error)
  )
}
