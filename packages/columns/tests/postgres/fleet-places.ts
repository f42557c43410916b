/** Pools of fleets for tests with processes of their own: where each lies, a store over it in this process, and a look past every store. */
import { readdir } from 'node:fs/promises'
import { join } from 'node:path'
import { openStore, type Store, type StoreOptions } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'
import { freshDatabase, freshSchema, type TestDatabase, type TestSchema } from '@alkblobs/testkit'
import { temporaryFolder } from '../processes/children.js'

/** What holds bodies above the threshold: one shared folder, the server itself, or nothing. */
export const KINDS = ['files', 'rows', 'objects'] as const
export type Kind = (typeof KINDS)[number]

/** Lengths above this go to the large tier. */
export const THRESHOLD = 4_096

/** What a worker needs to open the pool. */
export interface Place {
  readonly kind: Kind
  readonly url: string
  readonly schema: string
  readonly root: string
}

export interface FleetPool {
  readonly place: Place
  readonly query: TestDatabase['query']
  /** With `$.` for the schema of the catalog. */
  rows<R extends Record<string, unknown>>(text: string): Promise<R[]>
  open(options?: Partial<StoreOptions>): Promise<Store>
  /** A schema for an application beside the pool; it goes with the pool. */
  application(): Promise<TestSchema>
  /** Ends the sessions of that name and waits until they are gone. */
  endSessions(name: string): Promise<void>
  /** Sealed bodies on the large medium, and halves. */
  bodies(): Promise<{ readonly sealed: number; readonly halves: number }>
  drop(): Promise<void>
}

export async function fleetPool(kind: Kind): Promise<FleetPool> {
  const database = kind === 'objects' ? await freshDatabase() : undefined
  const { url, schema, query, drop } = await freshSchema(database)
  const root = join(await temporaryFolder(), 'bodies')
  const stores: Store[] = []
  const beside: TestSchema[] = []
  const large = { files: () => local({ root }), objects: () => pglo({ url }), rows: () => undefined }[kind]
  return {
    place: { kind, url, schema, root },
    query,
    rows: text => query(text.replaceAll('$.', `${schema}.`)),
    async open(options = {}) {
      const tier = large()
      const store = await openStore({
        kv: postgres({ url, schema }),
        ...(tier && { large: tier }),
        threshold: THRESHOLD,
        windowDelayMs: 0,
        trashDelayMs: 0,
        fleet: { sharedMedia: 'operator-declared' },
        ...options
      })
      stores.push(store)
      return store
    },
    async application() {
      const made = await freshSchema(database)
      beside.push(made)
      return made
    },
    async endSessions(name) {
      await query('SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE application_name = $1', [name])
    },
    bodies: () => bodiesOf(kind, root, query),
    async drop() {
      await Promise.allSettled(stores.map(store => store.close()))
      await drop()
      for (const each of beside) await each.drop()
      await database?.drop()
    }
  }
}

async function bodiesOf(kind: Kind, root: string, query: TestDatabase['query']) {
  if (kind === 'rows') return { sealed: 0, halves: 0 }
  if (kind === 'files') {
    const files = (await readdir(root, { recursive: true, withFileTypes: true })).filter(entry => entry.isFile())
    const halves = files.filter(({ parentPath }) => parentPath === join(root, 'stage')).length
    return {
      sealed: files.filter(({ name }) => name !== 'alkblobs.json' && !name.startsWith('.')).length - halves,
      halves
    }
  }
  const [row] = await query<{ sealed: number; halves: number }>(`SELECT
    (SELECT count(*)::int FROM alkblobs_pglo.lo_entries) AS sealed,
    (SELECT count(*)::int FROM pg_largeobject_metadata m
       WHERE NOT EXISTS (SELECT FROM alkblobs_pglo.lo_entries e WHERE e.loid = m.oid)) AS halves`)
  return row as { sealed: number; halves: number }
}
