/** The columns that need nothing but this process and a disk. Each function answers a factory of its own, so that test files do not share one. */
import { join } from 'node:path'
import { local } from '@alkblobs/engine-local'
import { createMedium, mem } from '@alkblobs/engine-mem'
import { sqlite } from '@alkblobs/engine-sqlite'
import { type ColumnFactory, factoryOf, type Media, type Place } from './factory.js'
import { databasePart } from './oracles/database.js'
import { folderPart } from './oracles/folder.js'
import { memoryPart } from './oracles/memory.js'
import { copyFolder, type Site } from './site.js'
import { DUAL_TIER_THRESHOLD, handles, KV_ONLY_THRESHOLD } from './tuning.js'

/** kv = mem, everything accepted: the reference column. */
export function memOnly(place?: Place): ColumnFactory {
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
export function kvOnlyMem(place?: Place): ColumnFactory {
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
export function memLocal(place?: Place): ColumnFactory {
  return factoryOf(
    {
      name: 'mem + local',
      traits: ['dual-tier', 'inline', 'foreign', 'medium', 'corrupt', 'corrupt-inline', 'root', ...handles],
      threshold: DUAL_TIER_THRESHOLD,
      media(site, largeSite = site) {
        const medium = createMedium()
        const root = join(largeSite.folder, 'large')
        // The memory exists as soon as it is made; whether the pool left anything behind is asked of the folder alone.
        const memory = { ...memoryPart(medium), exists: async () => false }
        return { kv: mem({ medium }), large: local({ root }), oracle: [memory, folderPart(root)] }
      }
    },
    place
  )
}

/** kv = sqlite, large = local: the default product. */
export function sqliteLocal(place?: Place): ColumnFactory {
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
        'copy',
        ...handles
      ],
      threshold: DUAL_TIER_THRESHOLD,
      media: sqliteLocalMedia
    },
    place
  )
}

function sqliteLocalMedia(site: Site, largeSite = site): Media {
  const file = join(site.folder, 'kv', 'pool.db')
  const root = join(largeSite.folder, 'large')
  return {
    kv: sqlite({ file }),
    large: local({ root }),
    oracle: [databasePart(file), folderPart(root)],
    copy: async other => sqliteLocalMedia(await copyFolder(site, other))
  }
}

/** kv = sqlite with a threshold. */
export function kvOnlySqlite(place?: Place): ColumnFactory {
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
        'copy',
        ...handles
      ],
      threshold: KV_ONLY_THRESHOLD,
      media: sqliteMedia
    },
    place
  )
}

function sqliteMedia(site: Site): Media {
  const file = join(site.folder, 'kv', 'pool.db')
  return {
    kv: sqlite({ file }),
    oracle: [databasePart(file)],
    copy: async other => sqliteMedia(await copyFolder(site, other))
  }
}
