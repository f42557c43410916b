/** Reclaims what dead processes left: pins, stages and delete marks whose time is over. */
import type { Call, Catalog, Lease, StageId } from '@alkblobs/core/engine'
import type { Pool } from '../pool.js'
import type { Transaction } from '../transaction.js'
import type { Leases } from './lease.js'
import { trashStage } from './stages.js'

/**
 * The longest any row may have to live: what core accepts for a TTL or a delay. A row beyond it was written while the clock was
 * ahead of time, and would wait out the whole error.
 */
const FUTURE_MAX_MS = 2 ** 31
const FUTURE_EXPIRIES = [
  'UPDATE gc_pins SET expires_at = ? WHERE expires_at > ?',
  'UPDATE stages SET expires_at = ? WHERE expires_at > ?',
  'UPDATE trash SET not_before = ? WHERE not_before > ?'
]
/** A candidate's delay then counts from now. */
const FUTURE_STAGINGS = 'UPDATE gc_window SET staged_at = ? WHERE staged_at > ?'

/** Rows in one transaction. */
const ROWS_MAX = 1_000
/** A delete that is still asking its liveness sources after a day is not one. Ending its mark early would only refuse it. */
const MARK_TTL_MS = 24 * 60 * 60 * 1000

const REAP = `
  DELETE FROM gc_pins WHERE (key, owner) IN (SELECT key, owner FROM gc_pins WHERE expires_at <= ? LIMIT ${ROWS_MAX})`
const EXPIRED_STAGES = `SELECT id FROM stages WHERE expires_at <= ? LIMIT ${ROWS_MAX}`
const END_MARKS = `
  DELETE FROM gc_window WHERE (key, mark) IN
    (SELECT key, mark FROM gc_window WHERE mark <> '' AND staged_at <= ? LIMIT ${ROWS_MAX})`

export function maintainOf(pool: Pool, leases: Leases): Pick<Catalog, 'maintain'> {
  /** Repeats a step until it has found less than it may take at once. */
  async function all(lease: Lease, call: Call, step: (transaction: Transaction) => number): Promise<number> {
    for (let total = 0; ; ) {
      const count = await pool.write(call, {
        absent: () => 0,
        run: transaction => {
          leases.check(lease, transaction)
          return step(transaction)
        }
      })
      total += count
      if (count < ROWS_MAX) return total
    }
  }
  return {
    async maintain(lease, call) {
      await all(lease, call, ({ at, now }) => {
        for (const sql of FUTURE_EXPIRIES) at.run(sql, now + FUTURE_MAX_MS, now + FUTURE_MAX_MS)
        at.run(FUTURE_STAGINGS, now, now)
        return 0
      })
      const pinsReaped = await all(lease, call, ({ at, now }) => at.run(REAP, now))
      const stagesTrashed = await all(lease, call, trashExpired)
      await all(lease, call, ({ at, now }) => at.run(END_MARKS, now - MARK_TTL_MS))
      return { pinsReaped, stagesTrashed }
    }
  }
}

function trashExpired(transaction: Transaction): number {
  const expired = transaction.at.rows<[StageId]>(EXPIRED_STAGES, transaction.now)
  for (const [stage] of expired) trashStage(transaction, stage)
  return expired.length
}
