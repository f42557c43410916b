/** How much memory a large blob takes on its way into large objects of PostgreSQL and out again. */
import { inChild } from '../child.mjs'

const POOL = import.meta.resolve('../children/pg-memory-of-pool.mjs')

export const pgMemory = {
  id: 'pg-memory',
  needs: 'postgres',
  unit: 'MiB',
  titleOf: ({ scale }) =>
    `${scale.memoryLength / 2 ** 20} MiB streamed in and out of large objects, growth of the resident set at its highest`,
  warmUp: false,
  roundsOf: () => 1,
  async contestants({ server, scale }) {
    const pool = (kv, note) => ({
      id: kv,
      name: `alkblobs ${kv} + pglo`,
      note,
      run: () => inChild(POOL, { server, kv, length: scale.memoryLength })
    })
    return [pool('postgres', 'durable, verified'), pool('mem', 'catalog in the same schema; durable, verified')]
  },
  ratiosOf: () =>
    ['postgres', 'mem'].map(kv => ({
      id: `pg-memory/${kv}`,
      value: round => round[kv].figure,
      atMost: 100,
      unit: 'MiB',
      against: 'over the idle process'
    }))
}
