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

/** Rows of one table that somebody has to see to. */
interface Task {
  readonly table: string
  /** Says which rows. */
  readonly where: string
  /** Sees to as many of them as one transaction may, and says how many those were. */
  readonly statement: string
}

function expiry(table: string, column: string, key: string): Task {
  const where = `${column} > clock_timestamp() + interval '${FUTURE_MAX}'`
  const statement = `
  WITH far AS MATERIALIZED (
    SELECT ${key} FROM $.${table} WHERE ${where} ORDER BY ${key} LIMIT ${ROWS_MAX} FOR UPDATE SKIP LOCKED
  )
  UPDATE $.${table} SET ${column} = clock_timestamp() + interval '${FUTURE_MAX}' WHERE (${key}) IN (SELECT ${key} FROM far)`
  return { table, where, statement }
}

const FUTURE_PINS = expiry('gc_pins', 'expires_at', 'key, owner')
const FUTURE_STAGES = expiry('stages', 'expires_at', 'id')
const FUTURE_TRASH = expiry('trash', 'not_before', 'what')
const IS_FUTURE_STAGING = 'staged_at > clock_timestamp()'
/** A candidate's delay then counts from now. */
const FUTURE_STAGINGS: Task = {
  table: 'gc_window',
  where: IS_FUTURE_STAGING,
  statement: `
  WITH far AS MATERIALIZED (
    SELECT key, mark FROM $.gc_window WHERE ${IS_FUTURE_STAGING}
    ORDER BY key, mark LIMIT ${ROWS_MAX} FOR UPDATE SKIP LOCKED
  )
  UPDATE $.gc_window SET staged_at = clock_timestamp() WHERE (key, mark) IN (SELECT key, mark FROM far)`
}
const IS_EXPIRED = 'expires_at <= clock_timestamp()'
const PINS: Task = {
  table: 'gc_pins',
  where: IS_EXPIRED,
  statement: `
  WITH dead AS MATERIALIZED (
    SELECT key, owner FROM $.gc_pins WHERE ${IS_EXPIRED} ORDER BY key, owner LIMIT ${ROWS_MAX} FOR UPDATE SKIP LOCKED
  )
  DELETE FROM $.gc_pins p USING dead d WHERE p.key = d.key AND p.owner = d.owner`
}
const STAGES: Task = {
  table: 'stages',
  where: IS_EXPIRED,
  statement: `
  WITH dead AS MATERIALIZED (
    SELECT id FROM $.stages WHERE ${IS_EXPIRED} ORDER BY id LIMIT ${ROWS_MAX} FOR UPDATE SKIP LOCKED
  ), trashed AS (
    INSERT INTO $.trash (what, not_before) SELECT id, clock_timestamp() FROM dead ORDER BY id
    ON CONFLICT (what) DO NOTHING
  )
  DELETE FROM $.stages s USING dead d WHERE s.id = d.id`
}
const IS_DEAD_MARK = `mark <> '' AND staged_at <= clock_timestamp() - interval '${MARK_TTL}'`
const MARKS: Task = {
  table: 'gc_window',
  where: IS_DEAD_MARK,
  statement: `
  WITH dead AS MATERIALIZED (
    SELECT key, mark FROM $.gc_window WHERE ${IS_DEAD_MARK} ORDER BY key, mark LIMIT ${ROWS_MAX} FOR UPDATE SKIP LOCKED
  )
  DELETE FROM $.gc_window w USING dead d WHERE w.key = d.key AND w.mark = d.mark`
}
/** In the order in which they are done. */
const TASKS: readonly Task[] = [FUTURE_PINS, FUTURE_STAGES, FUTURE_TRASH, FUTURE_STAGINGS, PINS, STAGES, MARKS]
/** Mostly there is nothing to be done: one look says so where each task is a transaction of its own (1 ms in place of 9). */
const LOOK = `SELECT ${TASKS.map(({ table, where }) => `EXISTS (SELECT 1 FROM $.${table} WHERE ${where})`).join(', ')}`

export function maintainOf(leases: Leases): Pick<Catalog, 'maintain'> {
  return {
    async maintain(lease, call) {
      const held = leases.held(lease)
      const isWanted = await held.ask<readonly boolean[]>(
        call,
        () => [],
        async at => (await at.row<boolean[]>(LOOK)) ?? []
      )
      const counts = new Map<Task, number>()
      for (const [i, task] of TASKS.entries()) {
        if (isWanted[i] === true) counts.set(task, await all(held, call, task.statement))
      }
      return { pinsReaped: counts.get(PINS) ?? 0, stagesTrashed: counts.get(STAGES) ?? 0 }
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
