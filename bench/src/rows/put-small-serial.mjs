/** Small blobs put one after the other: each waits for its own sync, so the disk is the limit. */
import { freshKeys, freshList } from '../content.mjs'
import { openDisk } from '../peers/bare-disk.mjs'
import { writeDurably } from '../peers/plain-files.mjs'
import { openPool, putAndRelease } from '../peers/pool.mjs'
import { openTable } from '../peers/table-of-blobs.mjs'
import { perSecond } from '../rounds.mjs'

const LENGTH = 16 * 1024

export const putSmallSerial = {
  id: 'put-small-serial',
  unit: 'puts/s',
  titleOf: () => '16 KiB, new content, each awaited before the next',
  contestants,
  ratiosOf: () => [
    {
      id: 'put-small-serial/better-sqlite3',
      value: round => round.alkblobs.figure / round.sqlite.figure,
      atLeast: 0.85,
      against: 'raw better-sqlite3, one transaction a put'
    }
  ]
}

async function contestants({ site, scale, closing }) {
  const store = await openPool(site.folder('pool'))
  const table = openTable(`${site.folder('sqlite')}/blobs.db`)
  const files = site.folder('files')
  const disk = openDisk(site.folder('disk'))
  closing(() => store.close())
  closing(() => table.close())
  closing(() => disk.close())
  const { serialCount, serialWarmCount } = scale.small
  const measure = (work, count = serialCount) => {
    const contents = freshList(count, LENGTH)
    const keys = freshKeys(count)
    return perSecond({ count }, i => work(contents[i], keys[i]))
  }
  const put = content => putAndRelease(store, content)
  const putRow = (content, key) => table.put(key, content)
  return [
    {
      id: 'alkblobs',
      name: 'alkblobs sqlite + local',
      note: 'durable, hashed, pinned and released',
      // Two to three thousand puts compile what a put runs: a process that serves for hours has that behind it.
      warm: () => measure(put, serialWarmCount),
      run: () => measure(put)
    },
    {
      id: 'sqlite',
      name: 'better-sqlite3, FULL, one a put',
      note: 'durable; no hash, no dedup, no pins; blocks the event loop',
      warm: () => measure(putRow, serialWarmCount),
      run: () => measure(putRow)
    },
    {
      id: 'files',
      name: 'a file, synced, and its folder',
      note: 'durable; no hash, no dedup',
      run: () => measure((content, key) => writeDurably(`${files}/${key.toString('hex')}`, content))
    },
    {
      id: 'disk',
      name: 'the disk: write in place and sync',
      note: 'the limit; keeps nothing to be found again',
      run: () => measure(content => disk.put(content))
    }
  ]
}
