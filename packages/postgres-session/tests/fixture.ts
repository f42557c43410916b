/** Sessions over a database of the file's own, an eye on it past them, and what the tests ask again and again. */
import { freshDatabase, noServer, type TestDatabase } from '@alkblobs/testkit'
import { afterAll, describe, expect, onTestFinished } from 'vitest'
import { type ConnectionConfig, classifyPostgres, Sessions, type Timeouts } from '../src/index.js'
import { Wire } from './wire.js'

const reason = noServer()

/** A group of tests that need the server; skipped with the reason where there is none. */
export function describeWithServer(title: string, tests: () => void): void {
  describe.skipIf(reason !== undefined)(reason === undefined ? title : `${title} (skipped: ${reason})`, tests)
}

export const call = (ms = 10_000) => ({ deadlineMs: performance.now() + ms })
export const sleep = (ms: number) => new Promise<void>(resolve => setTimeout(resolve, ms))

/** A server that is slow because the machine is busy is given so long before the test says that it never came. */
const PATIENCE_MS = 20_000

let made: Promise<TestDatabase> | undefined

afterAll(async () => {
  await (await made)?.drop()
})

/** The database of the file's tests, which are one after the other, without what the ones before have left in it. */
export async function database(): Promise<TestDatabase> {
  made ??= freshDatabase()
  const db = await made
  await db.query(`SELECT pg_terminate_backend(pid, ${PATIENCE_MS}) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name <> 'alkblobs-testkit'`)
  await db.query('DROP TABLE IF EXISTS public.t, public.u, public.b')
  return db
}

const TIMEOUTS: Timeouts = { connectTimeoutMs: 10_000, lockTimeoutMs: 2_000 }

/** Sessions that are closed when the test is over. */
export function sessions(config: ConnectionConfig, timeouts: Partial<Timeouts> = {}): Sessions {
  const over = new Sessions(config, { ...TIMEOUTS, ...timeouts })
  onTestFinished(() => over.close())
  return over
}

export interface Bench {
  readonly db: TestDatabase
  readonly wire: Wire
  readonly over: Sessions
  /** The values in table `t`, in order, seen past the sessions. */
  stored(): Promise<number[]>
}

/** A database with a table `public.t (v int)`, and sessions with it over a wire. */
export async function bench(config: ConnectionConfig = {}, timeouts: Partial<Timeouts> = {}): Promise<Bench> {
  const db = await database()
  const wire = await Wire.to(db)
  await db.query('CREATE TABLE public.t (v int)')
  return {
    db,
    wire,
    over: sessions({ ...addressOf(db), port: wire.port, ...config }, timeouts),
    stored: async () => (await db.query<{ v: number }>('SELECT v FROM public.t ORDER BY v')).map(({ v }) => v)
  }
}

export function addressOf({ host, port, user, password, database: name }: TestDatabase): ConnectionConfig {
  return { host, port, user, password, database: name }
}

/** Ends a backend and waits until it is gone. */
export async function terminate(db: TestDatabase, pid: number): Promise<void> {
  const [row] = await db.query<{ gone: boolean }>('SELECT pg_terminate_backend($1, $2) AS gone', [pid, PATIENCE_MS])
  expect(row?.gone).toBe(true)
}

/** Waits until it is so. */
export async function eventually(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; !(await isSo()); await sleep(10)) {
    if (performance.now() > end) throw new Error(`it never came to this: ${what}`)
  }
}

/** Waits until the server lists so many sessions that the condition is true of. */
export function until(db: TestDatabase, condition: string, count = 1): Promise<void> {
  const ask = `SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND ${condition}`
  return eventually(condition, async () => (await db.query(ask)).length === count)
}

/** Sessions that are asleep in a statement of the test's. */
export const ASLEEP = `wait_event = 'PgSleep'`

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

/** What a rejection is called; fails for a promise that resolves. */
export async function codeOf(promise: Promise<unknown>): Promise<string> {
  return promise.then(
    value => {
      throw new Error(`resolved with ${JSON.stringify(value)} instead of rejecting`)
    },
    error => classifyPostgres(error)
  )
}

/** The sessions still do their work: a statement, a transaction, and what goes past the driver. */
export async function expectWorking(over: Sessions): Promise<void> {
  expect(await over.use(call(), session => session.rows('SELECT 1'))).toEqual([[1]])
  expect(await over.transaction(call(), session => session.rows('SELECT 2'))).toEqual([[2]])
  const long = Buffer.alloc(300_000, 3)
  const first = () => [{ text: 'SELECT $1::bytea', params: [long] }]
  const rows = await over.exchange(call(), { first, decide: ([answer]) => ({ result: answer?.rows, last: [] }) })
  expect(rows?.[0]?.[0]?.equals(long)).toBe(true)
}
