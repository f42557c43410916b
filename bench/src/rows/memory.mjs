/** How much memory a large blob takes on its way in and out: a window or two, or all of it. */
import { inChild } from '../child.mjs'

const POOL = import.meta.resolve('../children/memory-of-pool.mjs')
const CACHE = import.meta.resolve('../children/memory-of-cache.mjs')

export const memory = {
  id: 'memory',
  unit: 'MiB',
  titleOf: ({ scale }) =>
    `${scale.memoryLength / 2 ** 20} MiB streamed in and out, growth of the resident set at its highest`,
  warmUp: false,
  roundsOf: ({ scale }) => (scale.name === 'quick' ? 1 : 3),
  async contestants({ site, scale }) {
    const length = scale.memoryLength
    const pool = (catalog, note) => ({
      id: catalog,
      name: `alkblobs ${catalog} + local`,
      note,
      run: () => inChild(POOL, { folder: site.folder(catalog), catalog, length })
    })
    return [
      pool('sqlite', 'durable, verified'),
      pool('mem', 'the body durable, verified'),
      {
        id: 'cacache',
        name: 'cacache stream',
        note: 'not synced; a producer that heeds backpressure',
        leavesDirty: true,
        run: () => inChild(CACHE, { folder: site.folder('cacache'), length })
      }
    ]
  },
  ratiosOf: () =>
    ['sqlite', 'mem'].map(catalog => ({
      id: `memory/${catalog}`,
      value: round => round[catalog].figure,
      atMost: 100,
      unit: 'MiB',
      against: 'over the idle process'
    }))
}
