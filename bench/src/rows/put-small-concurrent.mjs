/** Small blobs put many at a time: what joining commits is for. */
import { freshBytes, freshKeys, freshList } from '../content.mjs'
import { openDisk } from '../peers/bare-disk.mjs'
import { openCache } from '../peers/cache-of-npm.mjs'
import { openPool, putAndRelease } from '../peers/pool.mjs'
import { openTable } from '../peers/table-of-blobs.mjs'
import { perSecond } from '../rounds.mjs'

const LENGTH = 16 * 1024
const IN_FLIGHT = 64
const BATCH = 100

export const putSmallConcurrent = {
  id: 'put-small-concurrent',
  unit: 'puts/s',
  titleOf: () => `16 KiB, new content, ${IN_FLIGHT} in flight`,
  contestants,
  ratiosOf: () => [
    {
      id: 'put-small-concurrent/better-sqlite3',
      value: round => round.alkblobs.figure / round.sqlite.figure,
      atLeast: 0.75,
      against: 'raw better-sqlite3 in transactions of 100'
    },
    {
      id: 'put-small-concurrent/cacache',
      value: round => round.alkblobs.figure / round.cacache.figure,
      atLeast: 5,
      against: 'cacache, which does not sync'
    }
  ]
}

async function contestants({ site, scale, closing }) {
  const store = await openPool(site.folder('pool'))
  const table = openTable(`${site.folder('sqlite')}/blobs.db`)
  const cache = openCache(site.folder('cacache'))
  closing(() => store.close())
  closing(() => table.close())
  const disk = openDisk(site.folder('disk'))
  closing(() => disk.close())
  const { count, lead, peerCount } = scale.small
  return [
    {
      id: 'alkblobs',
      name: 'alkblobs sqlite + local',
      note: 'durable, hashed, pinned and released',
      run: () => {
        const contents = freshList(lead + count, LENGTH)
        return perSecond({ count, lead, width: IN_FLIGHT }, i => putAndRelease(store, contents[i]))
      }
    },
    {
      id: 'sqlite',
      name: `better-sqlite3, transactions of ${BATCH}`,
      note: 'durable; no hash, no dedup, no pins; knows all 100 beforehand',
      run: () => putBatches(table, count)
    },
    {
      id: 'cacache',
      name: 'cacache, 16 at a time',
      note: 'hashed; not synced: a power loss may lose or tear it',
      leavesDirty: true,
      run: () => {
        const contents = freshList(peerCount, LENGTH)
        return perSecond({ count: peerCount, width: 16 }, i => cache.put(contents[i]))
      }
    },
    {
      id: 'disk',
      name: 'the disk: 1 MiB in place and sync',
      note: 'the limit; keeps nothing to be found again',
      run: () => putWindows(disk, count)
    }
  ]
}

/** As many blobs at a time as are in flight. */
async function putWindows(disk, count) {
  const window = freshBytes(IN_FLIGHT * LENGTH)
  return IN_FLIGHT * (await perSecond({ count: Math.ceil(count / IN_FLIGHT) }, () => disk.put(window)))
}

async function putBatches(table, count) {
  const rounded = Math.ceil(count / BATCH) * BATCH
  const keys = freshKeys(rounded)
  const bodies = freshList(rounded, LENGTH)
  const part = (list, batch) => list.slice(batch * BATCH, (batch + 1) * BATCH)
  return BATCH * (await perSecond({ count: rounded / BATCH }, i => table.putAll(part(keys, i), part(bodies, i))))
}
