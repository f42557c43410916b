/** The record of what the pool is: `read`, `compareAndSet`. */
import type { PoolMeta, PoolRecord } from '@alkblobs/core/engine'
import { atomic, type Medium } from '../medium.js'

export function meta(medium: Medium): PoolMeta {
  return {
    read: call => atomic(call, () => medium.record),
    compareAndSet: (expected, next, call) =>
      atomic(call, () => {
        if (!sameRecord(medium.record, expected)) return false
        medium.record = Object.freeze({ ...next })
        return true
      })
  }
}

function sameRecord(one: PoolRecord | undefined, other: PoolRecord | undefined): boolean {
  if (one === undefined || other === undefined) return one === other
  return (
    one.poolId === other.poolId &&
    one.protocol === other.protocol &&
    one.algorithm === other.algorithm &&
    one.windowDelayMs === other.windowDelayMs &&
    one.bodiesClaimed === other.bodiesClaimed &&
    one.forkedFrom === other.forkedFrom
  )
}
