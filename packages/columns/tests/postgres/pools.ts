/**
 * Pools on a server, opened through the public store, and the eyes that look at them past it. After every test each database is
 * counted: no large object may be without its row, whatever the test did.
 */
import { join } from 'node:path'
import type { MediumOracle } from '@alkblobs/conformance'
import { EngineError, openStore, type Store, type StoreOptions } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'
import { sqlite } from '@alkblobs/engine-sqlite'
import { freshDatabase, freshSchema, noServer, type TestDatabase, type TestServer } from '@alkblobs/testkit'
import { afterEach, describe, expect } from 'vitest'
import { databasePart } from '../../src/oracles/database.js'
import { folderPart } from '../../src/oracles/folder.js'
import { largeObjectsPart } from '../../src/oracles/large-objects.js'
import { type OraclePart, oracleOver } from '../../src/oracles/part.js'
import { schemaPart } from '../../src/oracles/schema.js'
import { makeSite } from '../../src/site.js'

const ends: (() => unknown)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** Runs when the test is over, before what was registered earlier. */
export function atEnd(end: () => unknown): void {
  ends.push(end)
}

/** Tests that need a server, skipped with the reason where there is none. */
export function onServer(title: string, tests: () => void): void {
  const reason = noServer()
  if (reason === undefined) describe(title, tests)
  else describe.skip(`${title} (skipped: ${reason})`, tests)
}

export const KINDS = ['postgres', 'postgres + local', 'postgres + pglo', 'sqlite + pglo'] as const
export type Kind = (typeof KINDS)[number]

export const MIB = 2 ** 20
/** Longer contents are large; with postgres alone everything that is put here is small. */
const THRESHOLD = 10_000
const INLINE_MAX = 8 * MIB
const DAY_MS = 24 * 3_600_000
export const CONNECTIONS = 6

export interface OpenOptions extends Partial<StoreOptions> {
  /** A way to the server instead of its own port. */
  readonly port?: number
  /** Who comes to the database instead of its owner. */
  readonly url?: string
  readonly poolMax?: number
  readonly stageIdleTimeoutMs?: number
}

/** A pool on media of its own. */
export interface TestPool {
  readonly kind: Kind
  readonly db: TestDatabase
  /** The schema of the catalog. */
  readonly schema: string
  readonly folder: string
  readonly oracle: MediumOracle
  /** A store that is closed when the test is over. Nothing waits for a delay unless it is told to. */
  open(options?: OpenOptions): Promise<Store>
  /** Lets everything expire that expires. */
  expire(): Promise<void>
}

/** A pool that nobody has opened yet, on the server of the run or the one given. */
export async function testPool(kind: Kind, server?: TestServer): Promise<TestPool> {
  const db = await databaseOf(server)
  const { schema, drop, ...place } = await freshSchema(db)
  atEnd(drop)
  const site = await makeSite()
  atEnd(() => site.remove())
  const file = join(site.folder, 'kv', 'pool.db')
  const root = join(site.folder, 'large')
  const parts: OraclePart[] = []
  if (kind === 'sqlite + pglo') parts.push(databasePart(file))
  else parts.push(schemaPart({ ...place, schema, drop }, () => freshSchema(db)))
  if (kind === 'postgres + local') parts.push(folderPart(root))
  if (kind.endsWith('pglo')) parts.push(largeObjectsPart(db))
  const oracle = oracleOver(parts)
  return {
    kind,
    db,
    schema,
    folder: site.folder,
    oracle,
    expire: async () => oracle.age?.(DAY_MS),
    async open({ port, url: as = db.url, poolMax = CONNECTIONS, stageIdleTimeoutMs, ...options } = {}) {
      const url = port === undefined ? as : as.replace(`:${db.port}/`, `:${port}/`)
      const idle = stageIdleTimeoutMs === undefined ? {} : { stageIdleTimeoutMs }
      const kv = kind === 'sqlite + pglo' ? sqlite({ file }) : postgres({ url, schema, poolMax })
      const large = kind.endsWith('pglo') ? pglo({ url, poolMax, ...idle }) : local({ root })
      const store = await openStore({
        kv,
        ...(kind === 'postgres' ? {} : { large }),
        threshold: kind === 'postgres' ? INLINE_MAX : THRESHOLD,
        windowDelayMs: 0,
        trashDelayMs: 0,
        ...options
      })
      atEnd(() => store.close().catch(() => undefined))
      return store
    }
  }
}

/** A database of the test's own, counted before it goes. */
export async function databaseOf(server?: TestServer): Promise<TestDatabase> {
  const db = await freshDatabase(server)
  atEnd(() => db.drop())
  atEnd(async () => expect(await objectsWithoutRow(db)).toBe(0))
  return db
}

/** Large objects that no row of this engine's names; tests that make some of their own remove them first. */
async function objectsWithoutRow({ query }: TestDatabase): Promise<number> {
  const [there] = await query<{ found: boolean }>("SELECT to_regclass('alkblobs_pglo.lo_entries') IS NOT NULL AS found")
  const named = there?.found === true ? 'SELECT loid FROM alkblobs_pglo.lo_entries' : 'SELECT NULL::oid'
  const [row] = await query<{ n: number }>(`SELECT count(*)::int AS n FROM pg_largeobject_metadata m
    WHERE NOT EXISTS (SELECT FROM (${named}) AS e (loid) WHERE e.loid = m.oid)`)
  return row?.n as number
}

/** Bytes that belong to the name, the same each time. */
export function contentOf(name: string, length: number): Buffer {
  const bytes = Buffer.alloc(length)
  let state = [...name].reduce((hash, char) => Math.imul(hash ^ char.charCodeAt(0), 0x01000193) >>> 0, 0x811c9dc5)
  for (let at = 0; at + 4 <= length; at += 4) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    bytes.writeUInt32LE(state, at)
  }
  return bytes
}

export async function* chunksOf(bytes: Uint8Array, length = 65_536): AsyncGenerator<Uint8Array> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}

/** Ends every session of the store's as an administrator would, and waits until they are gone; answers how many there were. */
export async function killSessions({ db }: Pick<TestPool, 'db'>): Promise<number> {
  const rows = await db.query<{ gone: boolean }>(
    `SELECT pg_terminate_backend(pid, 5000) AS gone FROM pg_stat_activity
     WHERE datname = current_database() AND application_name <> 'alkblobs-testkit'`
  )
  return rows.filter(({ gone }) => gone).length
}

/** Sessions of stores in this database for which the condition holds. */
export async function sessionsWhere({ db }: Pick<TestPool, 'db'>, condition = 'true'): Promise<number> {
  const [row] = await db.query<{ n: number }>(
    `SELECT count(*)::int AS n FROM pg_stat_activity
     WHERE datname = current_database() AND application_name <> 'alkblobs-testkit' AND (${condition})`
  )
  return row?.n as number
}

/** Waits until the server shows so many such sessions. */
export async function untilSessions(pool: Pick<TestPool, 'db'>, condition: string, count = 1): Promise<void> {
  await expect.poll(() => sessionsWhere(pool, condition), { timeout: 5_000, interval: 10 }).toBe(count)
}

/** Whether a failure is one that a caller can act on: it has a kind, and says whether trying again may help. */
export function isTyped(error: unknown): error is EngineError {
  return error instanceof EngineError && (error.transient || error.kind === 'outcome-unknown')
}

/** How a promise ended and after how long: `done`, the kind of a failure of the medium, or the failure itself. */
export async function endOf(work: Promise<unknown>): Promise<{ readonly how: string; readonly ms: number }> {
  const start = performance.now()
  const how = await work.then(
    () => 'done',
    error => (isTyped(error) ? error.kind : `${error}`)
  )
  return { how, ms: performance.now() - start }
}

/** Reads a blob to its end and says whether it is these bytes. */
export async function holds(store: Store, key: string, bytes: Uint8Array): Promise<boolean> {
  const found = await (await store.get(key))?.bytes()
  return found !== undefined && Buffer.compare(found, bytes) === 0
}
