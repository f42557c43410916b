/** Content put that is there already: it is hashed and protected, and nothing is written but the pin. */
import { randomBytes } from 'node:crypto'
import { freshBytes, freshKeys, freshList } from '../content.mjs'
import { hashBytes } from '../peers/hash-alone.mjs'
import { openPool, putAndRelease } from '../peers/pool.mjs'
import { openTable } from '../peers/table-of-blobs.mjs'
import { milliseconds, perSecond } from '../rounds.mjs'

const SMALL = 16 * 1024
const LARGE = 16 * 1024 * 1024
/** Long enough for the large tier. */
const WARM_LENGTH = 256 * 1024
const WARM_COUNT = 2_048
const IN_FLIGHT = 64

export const dedupSmall = {
  id: 'dedup-small',
  unit: 'puts/s',
  titleOf: () => `16 KiB, ${IN_FLIGHT} in flight, durable, pinned and released`,
  async contestants({ site, scale, closing }) {
    const store = await openPool(site.folder('pool'))
    closing(() => store.close())
    const { count, lead } = scale.small
    const known = freshList(lead + count, SMALL)
    await perSecond({ count: known.length, width: 512 }, i => putAndRelease(store, known[i]))
    const put = contents => perSecond({ count, lead, width: IN_FLIGHT }, i => putAndRelease(store, contents[i]))
    return [
      { id: 'known', name: 'alkblobs, known content', note: 'hashed; only the pin is written', run: () => put(known) },
      { id: 'fresh', name: 'alkblobs, new content', note: 'all of it', run: () => put(freshList(lead + count, SMALL)) }
    ]
  },
  ratiosOf: () => [
    {
      id: 'dedup-small',
      value: round => round.known.figure / round.fresh.figure,
      atLeast: 1,
      against: 'putting new content'
    }
  ]
}

export const dedupLarge = {
  id: 'dedup-large',
  unit: 'ms',
  titleOf: () => '16 MiB in one buffer',
  async contestants({ site, closing }) {
    const store = await openPool(site.folder('pool'))
    closing(() => store.close())
    const table = openTable(`${site.folder('sqlite')}/blobs.db`)
    closing(() => table.close())
    const content = randomBytes(LARGE)
    await putAndRelease(store, content)
    const noted = Buffer.alloc(16)
    const hashAndNote = () => {
      hashBytes(content)
      table.put(freshKeys(1)[0], noted)
    }
    const warm = freshBytes(WARM_LENGTH)
    const many = async work => (await milliseconds(() => repeat(8, work))) / 8
    return [
      {
        id: 'known',
        name: 'alkblobs, known content',
        note: 'hashed; the pin is written and synced',
        // What such a put runs is compiled after two thousand of them, and is the same for shorter content.
        warm: () => repeat(WARM_COUNT, () => putAndRelease(store, warm)),
        run: () => many(() => putAndRelease(store, content))
      },
      {
        id: 'hash',
        name: 'hashing alone',
        note: 'the limit; keeps nothing',
        run: () => many(() => hashBytes(content))
      },
      {
        id: 'noted',
        name: 'hashing, and a row of better-sqlite3',
        note: 'the limit of a pin: one synced commit; looks at no file',
        run: () => many(hashAndNote)
      }
    ]
  },
  ratiosOf: () => [
    {
      id: 'dedup-large',
      value: round => round.known.figure / round.hash.figure,
      atMost: 1.2,
      against: 'the time of hashing alone'
    }
  ]
}

async function repeat(times, work) {
  for (let i = 0; i < times; i++) await work()
}
