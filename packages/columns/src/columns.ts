/** The columns of this repository. Each function answers a factory of its own, so that test files do not share one. */
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import type { StoreFactory, Trait } from '@alkblobs/conformance'
import { local } from '@alkblobs/engine-local'
import { createMedium, mem } from '@alkblobs/engine-mem'
import { sqlite } from '@alkblobs/engine-sqlite'
import { factoryOf, type Place } from './factory.js'
import { databasePart } from './oracles/database.js'
import { folderPart } from './oracles/folder.js'
import { memoryPart } from './oracles/memory.js'

/** Small, so that both tiers are met by short contents; not a power of two, so that no other boundary coincides with it. */
const DUAL_TIER_THRESHOLD = 3000
/** Above every boundary of hashing and paging, below a read window; quickly materialised. */
const KV_ONLY_THRESHOLD = 60_000

/** Open descriptors can be counted where the system lists them as files. */
const handles: readonly Trait[] = existsSync('/proc/self/fd') ? ['handles'] : []

/** kv = mem, everything accepted: the reference column. */
export function memOnly(place?: Place): StoreFactory {
  return factoryOf(
    {
      name: 'mem',
      traits: ['mem-only', 'inline', 'second', 'medium', 'corrupt-inline'],
      media() {
        const medium = createMedium()
        return { kv: mem({ medium }), oracle: [memoryPart(medium)] }
      }
    },
    place
  )
}

/** kv = mem with a threshold. */
export function kvOnlyMem(place?: Place): StoreFactory {
  return factoryOf(
    {
      name: 'kv-only(mem)',
      traits: ['kv-only', 'inline', 'second', 'medium', 'corrupt-inline'],
      threshold: KV_ONLY_THRESHOLD,
      media() {
        const medium = createMedium()
        return { kv: mem({ medium }), oracle: [memoryPart(medium)] }
      }
    },
    place
  )
}

/** kv = mem, large = local. */
export function memLocal(place?: Place): StoreFactory {
  return factoryOf(
    {
      name: 'mem + local',
      traits: ['dual-tier', 'inline', 'foreign', 'medium', 'corrupt', 'corrupt-inline', 'root', ...handles],
      threshold: DUAL_TIER_THRESHOLD,
      media(folder, largeFolder = folder) {
        const medium = createMedium()
        const root = join(largeFolder, 'large')
        // The memory exists as soon as it is made; whether the pool left anything behind is asked of the folder alone.
        const memory = { ...memoryPart(medium), exists: async () => false }
        return { kv: mem({ medium }), large: local({ root }), oracle: [memory, folderPart(root)] }
      }
    },
    place
  )
}

/** kv = sqlite, large = local: the default product. */
export function sqliteLocal(place?: Place): StoreFactory {
  return factoryOf(
    {
      name: 'sqlite + local',
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
        'root',
        'file',
        ...handles
      ],
      threshold: DUAL_TIER_THRESHOLD,
      media(folder, largeFolder = folder) {
        const file = join(folder, 'kv', 'pool.db')
        const root = join(largeFolder, 'large')
        return { kv: sqlite({ file }), large: local({ root }), oracle: [databasePart(file), folderPart(root)] }
      }
    },
    place
  )
}

/** kv = sqlite with a threshold. */
export function kvOnlySqlite(place?: Place): StoreFactory {
  return factoryOf(
    {
      name: 'kv-only(sqlite)',
      traits: [
        'kv-only',
        'durable',
        'second',
        'reopen',
        'medium',
        'age',
        'corrupt-inline',
        'refuse',
        'file',
        ...handles
      ],
      threshold: KV_ONLY_THRESHOLD,
      media(folder) {
        const file = join(folder, 'kv', 'pool.db')
        return { kv: sqlite({ file }), oracle: [databasePart(file)] }
      }
    },
    place
  )
}

/** Every column, in the order of the report. */
export const columns: readonly ((place?: Place) => StoreFactory)[] = [
  memOnly,
  kvOnlyMem,
  memLocal,
  sqliteLocal,
  kvOnlySqlite
]
