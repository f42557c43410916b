/** Small blobs a second over how many are put, or got, at the same time. */
import { freshList, spreadNumbers } from '../content.mjs'
import { openCache } from '../peers/cache-of-npm.mjs'
import { openPool, putAndRelease } from '../peers/pool.mjs'
import { perSecond } from '../rounds.mjs'

const LENGTH = 16 * 1024
const WIDTHS = [1, 4, 16, 64, 256]
const PUTS = 1_024
const GETS = 4_096
const CACHED = 256

export const growthFlight = {
  id: 'growth-flight',
  needs: 'growth',
  unit: '/s',
  titleOf: () => '16 KiB, by how many are in flight',
  roundsOf: ({ scale }) => Math.min(3, scale.rounds),
  async contestants({ site, closing }) {
    const store = await openPool(site.folder('pool'))
    closing(() => store.close())
    const cache = openCache(site.folder('cacache'))
    const keys = await Promise.all(freshList(1_024, LENGTH).map(content => putAndRelease(store, content)))
    return WIDTHS.flatMap(width => [
      {
        id: `put${width}`,
        name: `put, ${width} in flight`,
        note: 'durable, hashed, pinned and released',
        run: () => {
          const count = width === 1 ? PUTS / 8 : PUTS
          const contents = freshList(count, LENGTH)
          return perSecond({ count, width }, i => putAndRelease(store, contents[i]))
        }
      },
      {
        id: `get${width}`,
        name: `get, ${width} in flight`,
        note: 'verified',
        run: () => {
          const order = [...spreadNumbers(GETS, keys.length)]
          return perSecond({ count: GETS, width }, async i => (await store.get(keys[order[i]])).bytes())
        }
      },
      {
        id: `cacache${width}`,
        name: `cacache put, ${width} in flight`,
        note: 'hashed; not synced',
        leavesDirty: true,
        run: () => {
          const contents = freshList(CACHED, LENGTH)
          return perSecond({ count: CACHED, width }, i => cache.put(contents[i]))
        }
      }
    ])
  },
  ratiosOf: () => [],
  seriesOf: () => ({
    title: 'Blobs of 16 KiB a second over how many are in flight',
    x: 'in flight',
    y: 'a second',
    lines: [
      ['get', 'get'],
      ['put', 'put, synced'],
      ['cacache', 'cacache put, not synced']
    ].map(([id, name]) => ({ name, points: WIDTHS.map(width => ({ x: width, id: `${id}${width}`, scale: 1 })) }))
  })
}
