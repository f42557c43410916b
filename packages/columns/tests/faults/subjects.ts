/** The pools on which every fault is tried: one for each kind of catalog and body store, each with an oracle over its medium. */
import { createHash, randomBytes } from 'node:crypto'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore, type Store } from '@alkblobs/core'
import { type EngineDefinition, formatKey, type StageId } from '@alkblobs/core/engine'
import { local } from '@alkblobs/engine-local'
import { createMedium, mem } from '@alkblobs/engine-mem'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'
import { sqlite } from '@alkblobs/engine-sqlite'
import { contractSteps, REFERENCES, type Step, type Subject, steps, type Together, together } from '@alkblobs/faults'
import { freshDatabase, type TestDatabase, type TestServer } from '@alkblobs/testkit'
import { memoryFolder } from '../../src/index.js'
import { databasePart } from '../../src/oracles/database.js'
import { folderPart } from '../../src/oracles/folder.js'
import { largeObjectsPart, PGLO_SCHEMA } from '../../src/oracles/large-objects.js'
import { memoryPart } from '../../src/oracles/memory.js'
import type { OraclePart } from '../../src/oracles/part.js'
import { schemaPart } from '../../src/oracles/schema.js'

/** Where a pool lies, in a form that another process can be told. */
export type Place =
  | { readonly kind: 'mem' | 'kv-only mem' | 'mem + local' }
  | { readonly kind: 'sqlite + local' | 'kv-only sqlite'; readonly folder: string }
  | { readonly kind: 'postgres + local'; readonly folder: string; readonly url: string }
  | { readonly kind: 'postgres + pglo' | 'mem + pglo'; readonly url: string }

export interface Pool {
  readonly subject: Subject
  readonly place: Place
  readonly database?: TestDatabase
  /** Everything that is done with the pool: the steps of the facade, and the methods that it calls only in special company. */
  readonly steps: readonly Step[]
  /** The schemas that hold the tables of its engines. */
  readonly schemas: readonly string[]
  remove(): Promise<void>
}

export const THRESHOLD = 3_000
export const SCHEMA = 'alkblobs_test_pool'
/** Longer than any time to live. */
const A_DAY_MS = 24 * 3_600_000
/** The table that judges liveness in every pool on a server; the world has made it. */
const USED = { table: 'public.used', column: 'key' }
const A_CONTEXT = { algorithm: 'sha256', lockTimeoutMs: 5_000, connectTimeoutMs: 5_000 } as const
/** Short, so that what hangs is over soon; long beside what works here takes. */
export const TIMEOUT_MS = 4_000

export interface MakeOptions {
  /** Default: the server of the run. */
  readonly server?: TestServer
  /** What stands between the engines and the server, once there is a database. */
  readonly through?: (database: TestDatabase) => Promise<string>
  /** Passed to `openStore`. */
  readonly operationTimeoutMs?: number
  readonly below?: string
}

interface Media {
  readonly kv: EngineDefinition
  readonly large?: EngineDefinition
  readonly parts: readonly OraclePart[]
  /** What memory holds goes with its process, or waits for a time that the oracle cannot move; a test plays both. */
  readonly endPins?: () => void
  readonly place: Place
  /** Of the local body store, where there is one. */
  readonly root: string
}

export const EMBEDDED = ['kv-only mem', 'mem + local', 'sqlite + local'] as const
export const ON_SERVER = ['postgres + local', 'postgres + pglo', 'mem + pglo'] as const
export type Kind = Place['kind']

/** Makes media for one pool, and the subject over them. */
export async function makePool(kind: Kind, options: MakeOptions = {}): Promise<Pool> {
  const folder = mkdtempSync(join(options.below ?? memoryFolder(), 'alkblobs-faults-'))
  const needsServer = kind.includes('postgres') || kind.includes('pglo')
  const database = needsServer ? await freshDatabase(options.server) : undefined
  const url = database === undefined ? '' : ((await options.through?.(database)) ?? database.url)
  const media = mediaOf(kind, folder, url, database)
  const schemas = [...(kind.startsWith('postgres') ? [SCHEMA] : []), ...(kind.endsWith('pglo') ? [PGLO_SCHEMA] : [])]
  return {
    place: media.place,
    schemas,
    steps: [
      ...steps,
      // Memory opens only in the company that it was first opened in; its own tests call what is left of it.
      ...[media.kv, ...(media.large ? [media.large] : [])]
        .filter(({ name }) => name !== 'mem')
        .flatMap(each => contractSteps(each, { table: USED, ...(url !== '' && { url }) }))
    ],
    ...(database && { database }),
    subject: subjectOf(media, options, database, kind.startsWith('postgres') ? url : undefined),
    async remove() {
      await database?.drop()
      rmSync(folder, { recursive: true, force: true, maxRetries: 3 })
    }
  }
}

function mediaOf(kind: Kind, folder: string, url: string, database: TestDatabase | undefined): Media {
  const root = join(folder, 'large')
  return { ...enginesOf(kind, { folder, root, url }, database), root }
}

function enginesOf(
  kind: Kind,
  { folder, root, url }: { readonly folder: string; readonly root: string; readonly url: string },
  database: TestDatabase | undefined
): Omit<Media, 'root'> {
  const file = join(folder, 'kv.db')
  const inSchema = (schema: string) => schemaPart({ ...(database as TestDatabase), schema }, () => Promise.reject())
  const memory = () => {
    const medium = createMedium()
    const maps = medium as unknown as {
      readonly pins: Map<unknown, unknown>
      readonly stages: Map<unknown, number>
      readonly trash: { values(): Iterable<{ droppableAt: number }> }
    }
    const endPins = () => {
      maps.pins.clear()
      for (const stage of maps.stages.keys()) maps.stages.set(stage, 0)
      for (const row of maps.trash.values()) row.droppableAt = 0
    }
    return { kv: mem({ medium }), part: memoryPart(medium), endPins }
  }
  switch (kind) {
    case 'mem':
    case 'kv-only mem': {
      const { kv, part, endPins } = memory()
      return { kv, parts: [part], endPins, place: { kind } }
    }
    case 'mem + local': {
      const { kv, part, endPins } = memory()
      return { kv, large: local({ root }), parts: [part, folderPart(root)], endPins, place: { kind } }
    }
    case 'sqlite + local':
      return {
        kv: sqlite({ file }),
        large: local({ root }),
        parts: [databasePart(file), folderPart(root)],
        place: { kind, folder }
      }
    case 'kv-only sqlite':
      return { kv: sqlite({ file }), parts: [databasePart(file)], place: { kind, folder } }
    case 'postgres + local':
      return {
        kv: postgres({ url, schema: SCHEMA }),
        large: local({ root }),
        parts: [inSchema(SCHEMA), folderPart(root)],
        place: { kind, folder, url }
      }
    case 'postgres + pglo':
      return {
        kv: postgres({ url, schema: SCHEMA }),
        large: pglo({ url }),
        parts: [inSchema(SCHEMA), largeObjectsPart(database as TestDatabase)],
        place: { kind, url }
      }
    case 'mem + pglo': {
      const { kv, part, endPins } = memory()
      const parts = [part, inSchema(PGLO_SCHEMA), largeObjectsPart(database as TestDatabase)]
      return { kv, large: pglo({ url }), parts, endPins, place: { kind, url } }
    }
  }
}

function subjectOf(
  media: Media,
  options: MakeOptions,
  database: TestDatabase | undefined,
  /** Where an application finds the kv tier's database, as the store does. */
  url: string | undefined
): Subject {
  const { kv, large, parts, endPins } = media
  return {
    threshold: THRESHOLD,
    hasBodies: large !== undefined,
    secrets: database === undefined ? [] : [database.password, database.url].filter(text => text.length > 5),
    open: wrap =>
      openStore({
        kv: wrap(kv),
        ...(large && { large: wrap(large) }),
        threshold: THRESHOLD,
        derivation: 'sha256',
        windowDelayMs: 0,
        trashDelayMs: 0,
        operationTimeoutMs: options.operationTimeoutMs ?? TIMEOUT_MS,
        lockTimeoutMs: 1_000,
        connectTimeoutMs: 2_000
      }),
    async expire() {
      for (const part of parts) await part.age?.(A_DAY_MS)
      endPins?.()
    },
    async residue() {
      const all = await Promise.all(parts.map(part => part.counts()))
      const sum = (name: keyof (typeof all)[number]) => all.reduce((total, counts) => total + (counts[name] ?? 0), 0)
      return { stages: sum('stages'), trash: sum('trash'), window: sum('window'), pins: sum('pins') }
    },
    ...(large && { orphan: () => orphan(large, media.root) }),
    ...(database && url && { together: <T>(work: Together<T>) => bothOrNeither(database, url, work) }),
    ...(database && { protectTable: (store: Store, table: string) => protectTable(store, database, table) })
  }
}

/** What a writer leaves that died after its seal and whose stage has come and gone: a whole body that no row knows. */
async function orphan(large: EngineDefinition, root: string): Promise<void> {
  const stage = randomBytes(16).toString('hex') as StageId
  const bytes = randomBytes(5_000)
  const digest = createHash('sha256').update(bytes).digest()
  if (large.name === 'local') {
    // By hand: the store beside it may hold the folder alone.
    const folder = join(root, stage.slice(0, 2), stage.slice(2, 4))
    mkdirSync(folder, { recursive: true, mode: 0o700 })
    writeFileSync(join(folder, `${stage}.${digest.toString('hex')}.${bytes.length}`), bytes, { mode: 0o600 })
    return
  }
  const engine = await large.open(A_CONTEXT)
  try {
    const call = { deadlineMs: performance.now() + 10_000 }
    const { bodies } = engine
    const claim = await bodies?.claimed(call)
    if (claim === undefined) return
    await bodies?.claim(claim, call)
    const writer = await bodies?.create(stage, {}, call)
    await writer?.write(bytes)
    await writer?.seal(formatKey('sha256', digest))
  } finally {
    await engine.close()
  }
}

async function protectTable(store: Store, database: TestDatabase, table: string) {
  await database.query(`CREATE TABLE IF NOT EXISTS public.${table} (key text)`)
  await database.query(`CREATE INDEX IF NOT EXISTS ${table}_key ON public.${table} (key)`)
  return await store.protect({ table: `public.${table}`, column: 'key' })
}

/** Looks past the store, once the session is gone, whether what was put and what was referred to are there together. */
async function bothOrNeither<T>(database: TestDatabase, url: string, work: Together<T>): Promise<T> {
  const keys: string[] = []
  let pid = 0
  const told = together<T>(url, (transaction, refer, servedBy) => {
    pid = servedBy
    const noted = async (key: string) => {
      keys.push(key)
      await refer(key)
    }
    return work(transaction, noted, servedBy)
  })
  await told.catch(() => undefined)
  const alive = `SELECT pid, state, wait_event, left(query, 80) AS query, clock_timestamp() - backend_start AS age,
      clock_timestamp() - state_change AS since
    FROM pg_stat_activity WHERE pid = $1 AND application_name = 'alkblobs-application'`
  for (const end = performance.now() + 10_000; ; await new Promise(resolve => setTimeout(resolve, 10))) {
    const left = await database.query(alive, [pid])
    if (left.length === 0) break
    if (performance.now() > end) throw new Error(`the application still has a session: ${JSON.stringify(left)}`)
  }
  if (keys.length === 0) return told
  const list = keys.map(key => `'${key}'`).join(', ')
  const rows = await database.query(`SELECT FROM ${REFERENCES} WHERE key IN (${list})`)
  const entries = await database.query(
    `SELECT FROM ${SCHEMA}.entries WHERE 'sha256:' || encode(key, 'hex') IN (${list})`
  )
  if (rows.length !== entries.length) {
    throw new Error(`half a joint commit: ${rows.length} rows and ${entries.length} entries of ${keys.length}`)
  }
  return told
}
