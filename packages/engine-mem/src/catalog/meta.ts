/** The record of what the pool is: `read`, `compareAndSet`. */
import { isDeepStrictEqual } from 'node:util'
import type { PoolMeta } from '@alkblobs/core/engine'
import { atomic, type Medium } from '../medium.js'

export function meta(medium: Medium): PoolMeta {
  return {
    read: call => atomic(call, () => medium.record),
    compareAndSet: (expected, next, call) =>
      atomic(call, () => {
        if (!isDeepStrictEqual(medium.record, expected)) return false
        medium.record = Object.freeze({ ...next })
        return true
      })
  }
}
