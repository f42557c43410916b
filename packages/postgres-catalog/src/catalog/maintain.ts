/** Reclaims what dead processes left: pins, stages and delete marks whose time is over. Leaves alone what somebody has locked. */
import type { Call, Catalog } from '@alkblobs/core/engine'
import type { HeldLease, Leases } from './lease.js'

/** Rows in one transaction: bounds how long others wait and how much vacuum finds at once. */
const ROWS_MAX = 1_000
/** A delete that is still asking its liveness sources after a day is not one. Ending its mark early would only refuse it. */
const MARK_TTL = '24 hours'
/**
 * The longest any row may have to live: what core accepts for a TTL or a delay. A row beyond it was written by a server whose
 * clock was ahead, and would wait out the whole error. In seconds: PostgreSQL 14 reads no number above 2³¹ - 1 in an interval.
 */
const FUTURE_MAX = `${2 ** 31 / 1000} seconds`

const expiry = (table: string, column: string, key: string) => `
  WITH far AS MATERIALIZED (
    SELECT ${key} FROM $.${table} WHERE ${column} > clock_timestamp() + interval '${FUTURE_MAX}'
    ORDER BY ${key} LIMIT ${ROWS_MAX} FOR UPDATE SKIP LOCKED
  )
  UPDATE $.${table} SET ${column} = clock_timestamp() + interval '${FUTURE_MAX}' WHERE (${key}) IN (SELECT ${key} FROM far)`
const FUTURE = [
  expiry('gc_pins', 'expires_at', 'key, owner'),
  expiry('stages', 'expires_at', 'id'),
  expiry('trash', 'not_before', 'what')
]
/** A candidate's delay then counts from now. */
const FUTURE_STAGINGS = `
  WITH far AS MATERIALIZED (
    SELECT key, mark FROM $.gc_window WHERE staged_at > clock_timestamp()
    ORDER BY key, mark LIMIT ${ROWS_MAX} FOR UPDATE SKIP LOCKED
  )
  UPDATE $.gc_window SET staged_at = clock_timestamp() WHERE (key, mark) IN (SELECT key, mark FROM far)`
const REAP = `
  WITH dead AS MATERIALIZED (
    SELECT key, owner FROM $.gc_pins WHERE expires_at <= clock_timestamp()
    ORDER BY key, owner LIMIT ${ROWS_MAX} FOR UPDATE SKIP LOCKED
  )
  DELETE FROM $.gc_pins p USING dead d WHERE p.key = d.key AND p.owner = d.owner`
const TRASH_STAGES = `
  WITH dead AS MATERIALIZED (
    SELECT id FROM $.stages WHERE expires_at <= clock_timestamp() ORDER BY id LIMIT ${ROWS_MAX} FOR UPDATE SKIP LOCKED
  ), trashed AS (
    INSERT INTO $.trash (what, not_before) SELECT id, clock_timestamp() FROM dead ORDER BY id
    ON CONFLICT (what) DO NOTHING
  )
  DELETE FROM $.stages s USING dead d WHERE s.id = d.id`
const END_MARKS = `
  WITH dead AS MATERIALIZED (
    SELECT key, mark FROM $.gc_window WHERE mark <> '' AND staged_at <= clock_timestamp() - interval '${MARK_TTL}'
    ORDER BY key, mark LIMIT ${ROWS_MAX} FOR UPDATE SKIP LOCKED
  )
  DELETE FROM $.gc_window w USING dead d WHERE w.key = d.key AND w.mark = d.mark`

export function maintainOf(leases: Leases): Pick<Catalog, 'maintain'> {
  return {
    async maintain(lease, call) {
      const held = leases.held(lease)
      for (const statement of [...FUTURE, FUTURE_STAGINGS]) await all(held, call, statement)
      const pinsReaped = await all(held, call, REAP)
      const stagesTrashed = await all(held, call, TRASH_STAGES)
      await all(held, call, END_MARKS)
      return { pinsReaped, stagesTrashed }
    }
  }
}

/** Repeats a statement until it has found less than it may take at once; answers how many rows it touched. */
async function all(held: HeldLease, call: Call, statement: string): Promise<number> {
  for (let total = 0; ; ) {
    const count = await held.write(
      call,
      () => 0,
      at => at.run(statement)
    )
    total += count
    if (count < ROWS_MAX) return total
  }
}
