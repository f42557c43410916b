/**
 * Holds a session of the tested engine at an exact phase of its work, while everybody else can see it there.
 *
 * | barrier | where the session waits |
 * |---|---|
 * | `statements` | before its next statement that touches the tables: the administrator holds them, nobody else can read or write |
 * | `row` | after its insert, update or delete of a row of the table, in the open transaction: in an advisory lock, taken by a trigger |
 * | `commit` | in its COMMIT, with all its work done: in the same lock, taken by a deferred trigger |
 */
import { randomInt } from 'node:crypto'
import { lookUntil } from '../looking.js'
import { assertMinted, literal, type PgAdmin, quoted } from './admin.js'

/** Why nobody came to a barrier within its time. */
export type BarrierCause =
  /** The engine had no session at all. */
  | 'no session'
  /** Its sessions did something else, or nothing. */
  | 'sessions elsewhere'
  /** A session waited for a lock that is not the barrier's. */
  | 'waiting for another lock'

/** A barrier to which nobody came in time. Says which of its causes it saw. */
export class BarrierExpired extends Error {
  readonly causeSeen: BarrierCause

  constructor(where: string, causeSeen: BarrierCause, sessions: readonly string[]) {
    super(`nobody came to the barrier at ${where}: ${causeSeen}${sessions.map(each => `\n  ${each}`).join('')}`)
    this.name = 'BarrierExpired'
    this.causeSeen = causeSeen
  }
}

export interface Barrier {
  readonly where: string
  /** The process that waits at the barrier. @throws BarrierExpired. */
  reached(limitMs?: number): Promise<number>
  /** Lets everybody pass, and takes away what held them. Idempotent. */
  open(): Promise<void>
}

const REACH_LIMIT_MS = 5_000

/** Everything that touches one of these tables waits, whatever it wants. Waits itself for those who use them now. */
export async function statementsBarrier(
  admin: PgAdmin,
  tables: readonly { readonly schema: string; readonly table: string }[]
): Promise<Barrier> {
  for (const { schema } of tables) assertMinted(admin.database, schema)
  const names = tables.map(({ schema, table }) => `${quoted(schema)}.${quoted(table)}`)
  await admin.hold('BEGIN')
  try {
    await admin.hold(`LOCK TABLE ${names.join(', ')} IN ACCESS EXCLUSIVE MODE`)
  } catch (error) {
    await admin.hold('ROLLBACK')
    throw error
  }
  return barrier(admin, `statements on ${names.join(', ')}`, "locktype = 'relation'", async () => {
    await admin.hold('ROLLBACK')
  })
}

/** Who has changed a row of the table so waits, before or in its commit. */
export async function rowBarrier(
  admin: PgAdmin,
  {
    schema,
    table,
    event,
    at
  }: {
    readonly schema: string
    readonly table: string
    readonly event: 'INSERT' | 'UPDATE' | 'DELETE'
    readonly at: 'row' | 'commit'
  }
): Promise<Barrier> {
  assertMinted(admin.database, schema)
  const key = randomInt(1, 2 ** 31 - 1)
  const name = `fault_barrier_${key}`
  const on = `${quoted(schema)}.${quoted(table)}`
  const call = `${quoted(schema)}.${name}()`
  await admin.hold(`SELECT pg_advisory_lock(${key})`)
  await admin.query(`
    CREATE FUNCTION ${call} RETURNS trigger LANGUAGE plpgsql AS $body$
      BEGIN PERFORM pg_advisory_lock(${key}); PERFORM pg_advisory_unlock(${key}); RETURN NULL; END $body$`)
  await admin.query(
    at === 'row'
      ? `CREATE TRIGGER ${name} AFTER ${event} ON ${on} FOR EACH ROW EXECUTE FUNCTION ${call}`
      : `CREATE CONSTRAINT TRIGGER ${name} AFTER ${event} ON ${on} DEFERRABLE INITIALLY DEFERRED
           FOR EACH ROW EXECUTE FUNCTION ${call}`
  )
  return barrier(admin, `${at} of ${event} on ${table}`, `locktype = 'advisory' AND objid = ${key}`, async () => {
    await admin.hold(`SELECT pg_advisory_unlock(${key})`)
    // Waits for whoever is just passing: dropping a function that runs is no harm, dropping its table's trigger waits.
    await admin.query(`DROP FUNCTION ${call} CASCADE`)
  })
}

function barrier(admin: PgAdmin, where: string, lock: string, takeAway: () => Promise<void>): Barrier {
  let isOpen = false
  const others = `pid <> ALL ('{${admin.pids.join(',')}}'::int[])`
  // The server shows the locks of all its databases, and whoever waits in another one is somebody else's.
  const here = '(SELECT oid FROM pg_database WHERE datname = current_database())'
  const waiting = `SELECT pid::int FROM pg_locks
    WHERE NOT granted AND ${lock} AND database = ${here} AND ${others} ORDER BY pid LIMIT 1`
  return {
    where,
    async reached(limitMs = REACH_LIMIT_MS) {
      const pid = await lookUntil(async () => (await admin.query<{ pid: number }>(waiting))[0]?.pid, limitMs)
      if (pid !== undefined) return Number(pid)
      throw await expired(admin, where, others)
    },
    async open() {
      if (isOpen) return
      isOpen = true
      await takeAway()
    }
  }
}

async function expired(admin: PgAdmin, where: string, others: string): Promise<BarrierExpired> {
  const sessions = await admin.query<{ pid: number; state: string | null; waits: string | null }>(
    `SELECT pid::int, state, wait_event_type || ' ' || wait_event AS waits FROM pg_stat_activity
     WHERE datname = ${literal(admin.database)} AND backend_type = 'client backend' AND ${others}
       AND application_name <> 'alkblobs-testkit'`
  )
  const cause: BarrierCause =
    sessions.length === 0
      ? 'no session'
      : sessions.some(({ waits }) => waits?.startsWith('Lock '))
        ? 'waiting for another lock'
        : 'sessions elsewhere'
  return new BarrierExpired(
    where,
    cause,
    sessions.map(({ pid, state, waits }) => `process ${pid}: ${state ?? 'starting'}, ${waits ?? 'working'}`)
  )
}
