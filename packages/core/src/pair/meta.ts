/** The pool's record is the durable catalog's; memory has a copy, which its stamp and window delay are read from. */
import type { Call, PoolMeta, PoolRecord } from '../engine.js'
import type { Pair } from './index.js'

export function metaOf({ near, far }: Pair): PoolMeta {
  return {
    async read(call) {
      const record = await far.meta.read(call)
      if (record !== undefined) await copy(near.meta, record, call)
      return record
    },
    async compareAndSet(expected, next, call) {
      const isSet = await far.meta.compareAndSet(expected, next, call)
      if (isSet) await copy(near.meta, next, call)
      return isSet
    }
  }
}

/** Another store in this memory may be copying too; whichever is last has read the record last. */
async function copy(meta: PoolMeta, record: PoolRecord, call: Call): Promise<void> {
  while (!(await meta.compareAndSet(await meta.read(call), record, call)));
}
