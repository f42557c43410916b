/**
 * What became of a transaction whose COMMIT was not answered.
 *
 * A plain look for its effects cannot tell: the old session may still be about to commit. So another session asks the server for the
 * fate of the transaction's number, which each transaction learns when it begins:
 *
 *   1. `aborted`, or a number that was never given out: rolled back, for good.
 *   2. `committed`: so it is, once replicas have it that a commit here waits for (the old session may have been ended while it waited).
 *   3. `in progress`: the old session is ended, if it is still that one, and then asked about again, until the call's deadline.
 *
 * A number names a transaction only within one run of one server. A crash loses what was not on disk, and numbers that were lost are
 * given out anew; after a failover another server does so. Hence a session that asks must be with the very server (its identifier and
 * timeline), and `committed` is believed only where no crash can lie between: the old session is still seen; or the asking session is older
 * than the transaction; or the server's run is the same one still; or no checkpoint was made since the transaction began, which every stop
 * and every recovery makes; or the last checkpoint is the one with which the server came up, and knows the number as given out before.
 * (What is lost cannot have been committed, so 1 needs none of this. Two crashes within one call, with as many transactions in between as
 * the first one lost, are not told apart from one.) All is asked in one session, which a crash in the meantime would end.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Call, EngineFault } from '@alkblobs/core/engine'
import { classifyPostgres } from './classify.js'
import type { Connection } from './connection.js'
import { remaining, within } from './deadline.js'
import { ServerError } from './failure.js'

/** How a transaction is known to the server. */
export interface Begun {
  /** Its number with its epoch. */
  readonly xid: string
  /** Up to where the log was on disk when it began. */
  readonly flushedLsn: string
  /** When it began, on the clock of `performance.now()`. */
  readonly beganMs: number
  /** The session it was in: the process and its start, in seconds since 1970. */
  readonly pid: number
  readonly startedAt: string
  /** The server, if it could be asked. */
  readonly origin: Origin | undefined
}

/** Which server a session is with. */
export interface Origin {
  /** Its identifier and timeline. */
  readonly server: string
  /** Its run: from one start or crash to the next. */
  readonly run: string
}

/** A commit was asked for, and the answer is missing. */
export class LostAnswer extends EngineFault {
  readonly begun: Begun | undefined

  constructor(begun: Begun | undefined, cause: unknown) {
    super('outcome-unknown', 'the answer to a commit was lost', cause)
    this.begun = begun
  }
}

type Fate = 'committed' | 'aborted' | 'unknown'
/** `undefined`: another attempt may know more. */
type Look = Fate | undefined
type Lend = (call: Call, work: (connection: Connection) => Promise<Look>) => Promise<Look>

/** Longest one attempt may take; another session may be luckier. */
const ATTEMPT_MS = 5_000
const PAUSE_MS_MIN = 10
const PAUSE_MS_MAX = 250
/** Longest the old session may take to end before it is asked about again. */
const TERMINATE_MS = 2_000

/**
 * Server and timeline; NULL for a standby, which knows what it was told so far. The timeline is that of the log being written. A run is told
 * by when the server started, and when its statistics began: a crash of one of its processes restarts all others and discards those, at
 * the same start. (So may somebody by hand, and the run is taken for another one then.)
 */
const ORIGIN = `
  SELECT CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN system_identifier::text || ':' ||
    pg_catalog.substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8) END,
    pg_catalog.pg_postmaster_start_time()::text || ' ' || pg_catalog.pg_stat_get_bgwriter_stat_reset_time()::text
  FROM pg_catalog.pg_control_system()`
const SEEN = `
  SELECT 1 FROM pg_catalog.pg_stat_get_activity($1::integer) WHERE extract(epoch FROM backend_start)::text = $2::text`
const STATUS = 'SELECT pg_catalog.pg_xact_status($1::xid8)'
/** A process may have become somebody else's; not the one that is in this transaction. */
const TERMINATE = `
  SELECT pg_catalog.pg_terminate_backend(pid, $4::bigint) FROM pg_catalog.pg_stat_get_activity($1::integer)
  WHERE extract(epoch FROM backend_start)::text = $2::text AND backend_xid = $3::xid8::xid`
/**
 * Whether no checkpoint was made since the log was on disk up to $1, or the last one is that of a stop or a recovery (it has no part
 * before itself and no transactions under way, which is recorded unless the log is minimal) and knows the number $2 as given out.
 */
const IS_UNBROKEN = `
  SELECT checkpoint_lsn < $1::pg_lsn OR (
    checkpoint_lsn = redo_lsn AND oldest_active_xid = '0'::xid AND current_setting('wal_level') <> 'minimal' AND
    split_part(next_xid, ':', 1)::numeric * 4294967296 + split_part(next_xid, ':', 2)::numeric > $2::text::numeric)
  FROM pg_catalog.pg_control_checkpoint()`
const HAS_STANDBYS = "SELECT pg_catalog.current_setting('synchronous_standby_names') <> ''"
/** A commit of its own that waits for the same replicas, which get everything in the order of the log. */
const WAIT_FOR_STANDBYS = "SELECT pg_catalog.pg_logical_emit_message(true, 'alkblobs', '')"

/** @throws EngineFault `transient` if it was rolled back, the given one if that cannot be said before the deadline. */
export async function settle(lost: LostAnswer, call: Call, lend: Lend): Promise<void> {
  const { begun } = lost
  const fate = begun === undefined ? 'unknown' : await fateOf(begun, call, lend)
  if (fate === 'committed') return
  if (fate === 'unknown') throw lost
  throw new EngineFault('transient', 'the answer to a commit was lost; the transaction was rolled back', lost.cause)
}

async function fateOf(begun: Begun, { deadlineMs }: Call, lend: Lend): Promise<Fate> {
  // Whoever gave up waiting has not called the commit off.
  const call = { deadlineMs }
  for (let pauseMs = PAUSE_MS_MIN; remaining(call) > 0; pauseMs = Math.min(2 * pauseMs, PAUSE_MS_MAX)) {
    const attempt = within(call, ATTEMPT_MS)
    try {
      const fate = await lend(attempt, connection => look(connection, begun, attempt))
      if (fate !== undefined) return fate
    } catch (error) {
      if (isRefusal(error)) return 'unknown'
    }
    await sleep(Math.max(0, Math.min(pauseMs, remaining(call))))
  }
  return 'unknown'
}

/** A server that cannot be asked at all; one that is away or busy may come back. */
function isRefusal(error: unknown): boolean {
  if (error instanceof ServerError && error.severity !== 'ERROR') return false
  return ['denied', 'unknown'].includes(classifyPostgres(error))
}

async function look(at: Connection, begun: Begun, call: Call): Promise<Look> {
  const isSeen = (await at.rows(SEEN, [begun.pid, begun.startedAt])).length > 0
  const origin = await originOf(at)
  // A standby, or one that is about to be promoted.
  if (!isSeen && origin === undefined) return begun.origin === undefined ? 'unknown' : undefined
  const isSame = origin !== undefined && origin.server === begun.origin?.server
  if (!isSeen && !isSame) return 'unknown'
  const status = await statusOf(at, begun, call)
  if (status !== 'committed') return status
  const isOlder = isSame && !at.isProxied && at.openedMs < begun.beganMs
  if (!isSeen && !isOlder && origin?.run !== begun.origin?.run) {
    const [row] = await at.rows<[boolean]>(IS_UNBROKEN, [begun.flushedLsn, begun.xid])
    if (row?.[0] !== true) return 'unknown'
  }
  const [row] = await at.rows<[boolean]>(HAS_STANDBYS)
  if (row?.[0] === true) await at.rows(WAIT_FOR_STANDBYS)
  return 'committed'
}

/** The server behind a connection; `undefined` for a standby, and where the role may not ask. */
export async function originOf(at: Connection): Promise<Origin | undefined> {
  try {
    const [server, run] = (await at.rows<[string | null, string]>(ORIGIN))[0] ?? []
    return typeof server === 'string' && typeof run === 'string' ? { server, run } : undefined
  } catch (error) {
    if (error instanceof ServerError && error.severity === 'ERROR') return undefined
    throw error
  }
}

async function statusOf(at: Connection, begun: Begun, call: Call): Promise<Look> {
  const { pid, startedAt, xid } = begun
  const status = await ask(at, xid)
  if (status !== undefined) return status
  const patienceMs = Math.max(1, Math.floor(Math.min(TERMINATE_MS, remaining(call) / 2)))
  try {
    await at.rows(TERMINATE, [pid, startedAt, xid, patienceMs])
  } catch (error) {
    // Who may not end it waits until it has ended by itself.
    if (!(error instanceof ServerError && error.code === '42501')) throw error
  }
  return ask(at, xid)
}

/** @returns `undefined` while it is under way. */
async function ask(at: Connection, xid: string): Promise<Look> {
  try {
    const [row] = await at.rows<[string | null]>(STATUS, [xid])
    const status = row?.[0]
    if (status === 'in progress') return undefined
    return status === 'committed' || status === 'aborted' ? status : 'unknown'
  } catch (error) {
    // A number of the future: it was lost with a crash, and so was what was written under it.
    if (error instanceof ServerError && error.code === '22023') return 'aborted'
    throw error
  }
}
