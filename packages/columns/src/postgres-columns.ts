/** The columns that need a PostgreSQL server: its catalog, its large objects, and each beside an engine of another kind. */
import { join } from 'node:path'
import type { Trait } from '@alkblobs/conformance'
import { createMedium, mem } from '@alkblobs/engine-mem'
import { sqlite } from '@alkblobs/engine-sqlite'
import { type ColumnFactory, factoryOf, type Place } from './factory.js'
import { databasePart } from './oracles/database.js'
import { PGLO_SCHEMA } from './oracles/large-objects.js'
import { memoryPart } from './oracles/memory.js'
import { schemaPart } from './oracles/schema.js'
import { catalogOn, folderOf, largeObjectsIn, oneDatabase, serverMedia } from './postgres-media.js'
import { DUAL_TIER_THRESHOLD, handles, KV_ONLY_THRESHOLD } from './tuning.js'

/** What every catalog in PostgreSQL lets a test do. */
export const postgresTraits: readonly Trait[] = [
  'durable',
  'second',
  'reopen',
  'medium',
  'age',
  'corrupt-inline',
  'handles',
  'refuse',
  'schema',
  'tables',
  'transactions',
  'joins'
]

/** kv = postgres, large = local. */
export function postgresLocal(place?: Place): ColumnFactory {
  return factoryOf(
    {
      name: 'postgres + local',
      traits: ['dual-tier', 'foreign', 'corrupt', 'root', ...postgresTraits],
      threshold: DUAL_TIER_THRESHOLD,
      needsServer: true,
      media: async (site, largeSite = site) => serverMedia(await catalogOn(site), folderOf(largeSite))
    },
    place
  )
}

/** kv = postgres with a threshold. */
export function kvOnlyPostgres(place?: Place): ColumnFactory {
  return factoryOf(
    {
      name: 'kv-only(postgres)',
      traits: ['kv-only', ...postgresTraits],
      threshold: KV_ONLY_THRESHOLD,
      needsServer: true,
      media: async site => serverMedia(await catalogOn(site))
    },
    place
  )
}

/** kv = postgres, large = pglo, in one database. */
export function postgresPglo(place?: Place): ColumnFactory {
  return factoryOf(
    {
      name: 'postgres + pglo',
      traits: ['dual-tier', 'foreign', 'corrupt', 'large-objects', 'dormant', 'copy', ...postgresTraits],
      threshold: DUAL_TIER_THRESHOLD,
      needsServer: true,
      media: oneDatabase
    },
    place
  )
}

/** kv = mem, large = pglo: two catalogs, memory's for short keys and one beside the large objects for long ones. */
export function memPglo(place?: Place): ColumnFactory {
  return factoryOf(
    {
      name: 'mem + pglo',
      traits: [
        'dual-tier',
        'durable',
        'second',
        'medium',
        'age',
        'corrupt',
        'corrupt-inline',
        'large-objects',
        'two-catalogs',
        'tables',
        'handles'
      ],
      threshold: DUAL_TIER_THRESHOLD,
      needsServer: true,
      async media(_site, largeSite = _site) {
        const medium = createMedium()
        const database = await largeSite.database()
        const { engine, oracle } = largeObjectsIn(database)
        const place = { ...database, schema: PGLO_SCHEMA }
        const catalog = schemaPart(place, () => largeSite.schema(database))
        // The memory exists as soon as it is made, and its sessions are those of the large objects.
        const memory = { ...memoryPart(medium), exists: async () => false }
        return {
          kv: mem({ medium }),
          large: engine(1),
          oracle: [memory, { ...catalog, handles: async () => 0 }, oracle]
        }
      }
    },
    place
  )
}

/** kv = sqlite, large = pglo: a pair that nobody planned. */
export function sqlitePglo(place?: Place): ColumnFactory {
  return factoryOf(
    {
      name: 'sqlite + pglo',
      traits: [
        'dual-tier',
        'durable',
        'second',
        'reopen',
        'foreign',
        'medium',
        'age',
        'corrupt',
        'corrupt-inline',
        'refuse',
        'file',
        'schema',
        'large-objects',
        'dormant',
        ...handles
      ],
      threshold: DUAL_TIER_THRESHOLD,
      needsServer: true,
      async media(site, largeSite = site) {
        const file = join(site.folder, 'kv', 'pool.db')
        const { engine, oracle } = largeObjectsIn(await largeSite.database())
        return { kv: sqlite({ file }), large: engine(1), oracle: [databasePart(file), oracle] }
      }
    },
    place
  )
}
