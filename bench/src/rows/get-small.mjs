/** Small blobs read whole, in no order, from a warm page cache. */
import { readFile, writeFile } from 'node:fs/promises'
import { freshKeys, freshList, spreadNumbers } from '../content.mjs'
import { openCache } from '../peers/cache-of-npm.mjs'
import { hashBytes } from '../peers/hash-alone.mjs'
import { openPool, putAndRelease } from '../peers/pool.mjs'
import { openTable } from '../peers/table-of-blobs.mjs'
import { perSecond } from '../rounds.mjs'

const LENGTH = 16 * 1024
/** Blobs there are to read from: 32 MiB. */
const BLOBS = 2_048
/** Files are dear to make, so the file-based peers have fewer; the fewer the better for them. */
const FILES = 256

export const getSmall = {
  id: 'get-small',
  unit: 'gets/s',
  titleOf: () => '16 KiB, every blob verified, at random',
  contestants,
  ratiosOf: () => [
    {
      id: 'get-small/better-sqlite3',
      value: round => round.alkblobs.figure / round.sqlite.figure,
      atLeast: 0.5,
      against: 'raw better-sqlite3'
    },
    {
      id: 'get-small/cacache',
      value: round => round.alkblobs.figure / round.cacache.figure,
      atLeast: 4,
      against: 'cacache, 16 at a time'
    }
  ]
}

async function contestants({ site, scale, closing }) {
  const { pool, sqlite, cache, files, contents } = await filled(site, closing)
  const { getCount, peerCount } = scale.small
  const measure = (keys, { count, width }, get) => {
    const order = [...spreadNumbers(count, keys.length)]
    return perSecond({ count, width }, i => get(keys[order[i]]))
  }
  return [
    {
      id: 'alkblobs',
      name: 'alkblobs sqlite + local',
      note: 'verified, 16 at a time',
      run: () => measure(pool.keys, { count: getCount, width: 16 }, async key => (await pool.store.get(key)).bytes())
    },
    {
      id: 'sqlite',
      name: 'better-sqlite3',
      note: 'not verified; 16 KiB pages, memory-mapped',
      run: () => measure(sqlite.keys, { count: getCount }, key => sqlite.table.get(key))
    },
    {
      id: 'cacache',
      name: 'cacache by digest, 16 at a time',
      note: 'verified',
      run: () => measure(cache.keys, { count: peerCount * 2, width: 16 }, digest => cache.cache.get(digest))
    },
    {
      id: 'files',
      name: 'readFile, 16 at a time',
      note: 'not verified',
      run: () => measure(files, { count: peerCount * 4, width: 16 }, path => readFile(path))
    },
    {
      id: 'hash',
      name: 'hashing alone',
      note: 'a limit of verified reads; reads nothing',
      run: () => measure(contents, { count: getCount }, hashBytes)
    }
  ]
}

async function filled(site, closing) {
  const contents = freshList(BLOBS, LENGTH)
  const store = await openPool(site.folder('pool'))
  closing(() => store.close())
  const keys = await Promise.all(contents.slice(0, 1_024).map(content => putAndRelease(store, content)))
  keys.push(...(await Promise.all(contents.slice(1_024).map(content => putAndRelease(store, content)))))
  const table = openTable(`${site.folder('sqlite')}/blobs.db`)
  closing(() => table.close())
  const ids = freshKeys(BLOBS)
  table.putAll(ids, contents)
  const cache = openCache(site.folder('cacache'))
  const digests = await Promise.all(contents.slice(0, FILES).map(content => cache.put(content)))
  const folder = site.folder('files')
  const files = contents.slice(0, FILES).map((_, i) => `${folder}/${i}`)
  await Promise.all(files.map((file, i) => writeFile(file, contents[i])))
  return { pool: { store, keys }, sqlite: { table, keys: ids }, cache: { cache, keys: digests }, files, contents }
}
