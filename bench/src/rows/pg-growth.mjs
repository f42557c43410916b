/** How puts and gets in PostgreSQL grow with what is in flight. There is nothing to reach: it shows what a width brings. */
import { freshList } from '../content.mjs'
import { openPgPool } from '../peers/pg-pool.mjs'
import { putAndRelease } from '../peers/pool.mjs'
import { perSecond } from '../rounds.mjs'

const LENGTH = 16 * 1024
const WIDTHS = [1, 4, 16, 64, 256]
/** Of each width as many as it does in about the same time. */
const countOf = width => Math.min(1_024, 64 * width)

export const pgGrowth = {
  id: 'pg-growth',
  needs: 'postgres',
  unit: '/s',
  titleOf: () => '16 KiB, PostgreSQL, by the number in flight',
  roundsOf: ({ scale }) => Math.min(3, scale.rounds),
  async contestants({ server, closing }) {
    const store = await openPgPool(server, 'bench_growth')
    closing(() => store.close())
    const keys = []
    const put = width => async () => {
      const count = countOf(width)
      const contents = freshList(count, LENGTH)
      return perSecond({ count, width }, async i => {
        keys[i] = await putAndRelease(store, contents[i])
      })
    }
    const get = width => () =>
      perSecond({ count: countOf(width), width }, async i => {
        const blob = await store.get(keys[i % keys.length])
        await blob.bytes()
      })
    const row = (what, work, note) =>
      WIDTHS.map(width => ({ id: `${what}${width}`, name: `${what}, ${width} in flight`, note, run: work(width) }))
    return [...row('puts', put, 'durable, hashed, pinned and released'), ...row('gets', get, 'verified')]
  },
  ratiosOf: () => []
}
