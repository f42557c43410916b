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

let made: Promise<TestDatabase> | undefined

afterAll(async () => {
  await (await made)?.drop()
})

/** The database of the file's tests, which are one after the other, without what the ones before have left in it. */
export async function database(): Promise<TestDatabase> {
  made ??= freshDatabase()
  const db = await made
  await db.query(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name <> 'alkblobs-testkit'`)
  await db.query('DROP TABLE IF EXISTS public.t, public.u, public.b')
  return db
}

const TIMEOUTS: Timeouts = { connectTimeoutMs: 3_000, lockTimeoutMs: 2_000 }

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
  const [row] = await db.query<{ gone: boolean }>('SELECT pg_terminate_backend($1, 5000) AS gone', [pid])
  expect(row?.gone).toBe(true)
}

/** Waits until the server shows what the condition asks of `pg_stat_activity`. */
export async function until(db: TestDatabase, condition: string): Promise<void> {
  for (let attempt = 0; attempt < 500; attempt++) {
    const found = await db.query(`SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND ${condition}`)
    if (found.length > 0) return
    await sleep(10)
  }
  throw new Error(`the server never showed: ${condition}`)
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

/** The sessions still do their work: a statement and a transaction. */
export async function expectWorking(over: Sessions): Promise<void> {
  expect(await over.use(call(), session => session.rows('SELECT 1'))).toEqual([[1]])
  expect(await over.transaction(call(), session => session.rows('SELECT 2'))).toEqual([[2]])
}
