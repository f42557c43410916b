/**
 * Entries made inside a transaction of the application's: its session, its driver, its commit. What `publish.ts` does in a transaction
 * of its own, without a pin.
 *
 * | statement | does, if the session is still in that transaction |
 * |---|---|
 * | ENTER | makes the entry and ends the stage; or locks the entry that is there FOR KEY SHARE |
 * | TELL  | in a new look, which sees everything committed before that: cancels rows of the window and marks |
 *
 * Both are needed, because a statement sees what was committed before it began: a sweep may stage an entry, or stage and a delete remove
 * it, after ENTER began and before it has the lock. Once it has, nobody can stage or mark the key who has not committed. ENTER is said
 * again when it neither made nor locked anything although there is something: it came or went meanwhile.
 *
 * Locks are taken as everywhere: stage, entry, rows of the window. The stage is locked only where no entry is seen; where ENTER then finds
 * one after all, the lock stays until the transaction ends, and taking the stage back would wait for it: such a stage is left to expire.
 *
 * The driver is the application's, so nothing is assumed of how it writes and reads values: parameters are texts, and rows come raw.
 */
import { randomInt } from 'node:crypto'
import {
  type Call,
  digestHexOf,
  EngineFault,
  InvalidArgumentError,
  type JoinedTransaction,
  type Joining,
  type Locator,
  PROTOCOL_VERSION,
  type PublishOutcome,
  type StageId
} from '@alkblobs/core/engine'
import { withoutSecrets } from '@alkblobs/postgres-session'
import { AGAIN } from '../joiner.js'
import { noPool, type Pool } from '../pool.js'
import { giveUpAt, pause, refuseIfOver } from '../waiting.js'
import { entryOf } from './entries.js'
import { checkProtocol } from './meta.js'
import { madeEntry } from './outcome.js'

/** What is needed of the driver's handle. */
interface Handle {
  unsafe(text: string, params: readonly (string | null)[], options: { readonly prepare: boolean }): Query
}
interface Query {
  raw(): PromiseLike<Iterable<readonly (Uint8Array | null)[]>>
}
type Item = Parameters<JoinedTransaction['publish']>[0]

/** Gives the transaction its number, if it has none yet; the next statement of a session without one has another, or none. */
const SESSION = `
  SELECT pg_catalog.pg_backend_pid(), pg_catalog.pg_current_xact_id(), pg_catalog.current_setting('transaction_isolation'),
         pg_catalog.current_setting('transaction_read_only')`
const SAME = `
  SELECT 1 WHERE pg_catalog.pg_backend_pid() = $1::pg_catalog.text::pg_catalog.int4
    AND pg_catalog.pg_current_xact_id_if_assigned() = $2::pg_catalog.text::pg_catalog.xid8`
/** A lock that only a session of the same database of the same server sees held by that process. */
const HANDSHAKE = 'SELECT pg_catalog.pg_advisory_xact_lock($1::integer, $2::integer)'
const SEES = `
  SELECT 1 FROM pg_catalog.pg_locks WHERE locktype = 'advisory' AND objsubid = 2 AND granted
    AND classid = $1::pg_catalog.text::pg_catalog.int4::pg_catalog.oid AND objid = $2::pg_catalog.text::pg_catalog.int4::pg_catalog.oid
    AND pid = $3::pg_catalog.text::pg_catalog.int4
    AND database = (SELECT oid FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database())`

const HERE = `
  here AS MATERIALIZED (
    SELECT pg_catalog.decode($1::pg_catalog.text, 'hex') AS key FROM $.meta
    WHERE protocol <= ${PROTOCOL_VERSION} AND pg_catalog.pg_backend_pid() = $2::pg_catalog.text::pg_catalog.int4
      AND pg_catalog.pg_current_xact_id_if_assigned() = $3::pg_catalog.text::pg_catalog.xid8
  )`
const ENTER = `
  WITH ${HERE}, seen AS MATERIALIZED (
    SELECT EXISTS (SELECT 1 FROM here h JOIN $.entries e ON e.key = h.key) AS entry,
      $4::pg_catalog.text IS NULL OR EXISTS (
        SELECT 1 FROM $.stages s WHERE s.id = $4::pg_catalog.text AND s.expires_at > pg_catalog.clock_timestamp()) AS stage
  ), stage AS MATERIALIZED (
    SELECT s.id FROM $.stages s WHERE s.id = $4::pg_catalog.text AND s.expires_at > pg_catalog.clock_timestamp()
      AND EXISTS (SELECT 1 FROM here) AND NOT (SELECT entry FROM seen) FOR UPDATE
  ), made AS (
    INSERT INTO $.entries (key, length, body, locator)
    SELECT h.key, $5::pg_catalog.text::pg_catalog.int8, pg_catalog.decode($6::pg_catalog.text, 'base64'), $7::pg_catalog.text
    FROM here h WHERE $6::pg_catalog.text IS NOT NULL OR EXISTS (SELECT 1 FROM stage)
    ON CONFLICT (key) DO NOTHING RETURNING key
  ), ended AS (
    DELETE FROM $.stages s USING stage t, made m WHERE s.id = t.id
  ), found AS MATERIALIZED (
    SELECT e.length, pg_catalog.octet_length(e.body) AS held, e.locator FROM $.entries e JOIN here h ON e.key = h.key
    WHERE (SELECT stage FROM seen) FOR KEY SHARE OF e
  )
  SELECT EXISTS (SELECT 1 FROM here), (SELECT protocol FROM $.meta), s.entry, s.stage, EXISTS (SELECT 1 FROM stage),
         EXISTS (SELECT 1 FROM made), f.length, f.held, f.locator
  FROM seen s LEFT JOIN found f ON true`
const TELL = `
  WITH ${HERE}, held AS MATERIALIZED (
    SELECT e.key FROM $.entries e JOIN here h ON e.key = h.key FOR KEY SHARE OF e
  ), told AS MATERIALIZED (
    SELECT w.key, w.mark FROM $.gc_window w WHERE w.key = (SELECT key FROM held) AND NOT w.cancelled
    ORDER BY w.key, w.mark FOR UPDATE
  ), cancelled AS (
    UPDATE $.gc_window w SET cancelled = true FROM told t WHERE w.key = t.key AND w.mark = t.mark
  )
  SELECT EXISTS (SELECT 1 FROM here), EXISTS (SELECT 1 FROM held)`

const HANDLE = 'a transaction of the `postgres` driver'

export function joiningOf(pool: Pool): Joining {
  return {
    async join(transaction, call) {
      if (!(await pool.isThere(call))) noPool()
      const handle = handleOf(transaction)
      const [pid, xid] = await transactionOf(handle)
      await checkPlace(pool, handle, call)
      return new Joined(pool, handle, pid, xid)
    }
  }
}

class Joined implements JoinedTransaction {
  readonly #pool: Pool
  readonly #handle: Handle
  readonly #pid: string
  readonly #xid: string

  constructor(pool: Pool, handle: Handle, pid: string, xid: string) {
    this.#pool = pool
    this.#handle = handle
    this.#pid = pid
    this.#xid = xid
  }

  async publish(item: Item, call: Call): Promise<PublishOutcome> {
    const until = giveUpAt(call, this.#pool.lockTimeoutMs)
    for (let attempts = 1; ; attempts++) {
      refuseIfOver(call)
      const outcome = await this.#attempt(item)
      if (outcome !== AGAIN) return outcome
      if (performance.now() >= until) throw new EngineFault('conflict', 'others were in the way for too long')
      await pause(attempts, until)
    }
  }

  async #attempt(item: Item): Promise<PublishOutcome | typeof AGAIN> {
    const outcome = await this.#enter(item)
    if (outcome === AGAIN || !('entry' in outcome)) return outcome
    const [isHere, isHeld] = await this.#ask(TELL, digestHexOf(item.key))
    if (isHere !== 't') throw ended()
    if (isHeld !== 't') return AGAIN
    // Nobody takes it back any more.
    if (outcome.outcome === 'created' && item.bytes.kind === 'staged') this.#pool.lockedStages.delete(item.bytes.stage)
    return outcome
  }

  async #enter(item: Item): Promise<PublishOutcome | typeof AGAIN> {
    const { key, length, bytes } = item
    const stage = bytes.kind === 'staged' ? bytes.stage : null
    const body = bytes.kind === 'inline' ? Buffer.from(bytes.body).toString('base64') : null
    const locator = bytes.kind === 'staged' ? bytes.locator : null
    const row = await this.#ask(ENTER, digestHexOf(key), stage, `${length}`, body, locator)
    const [isHere, protocol, isSeen, hasStage, isStageLocked, isMade, foundLength, held, foundLocator] = row
    checkProtocol(protocol === null ? null : Number(protocol))
    if (isHere !== 't') throw ended()
    if (isStageLocked === 't') this.#pool.lockedStages.add(stage as StageId)
    if (isMade === 't') return { outcome: 'created', entry: madeEntry(item) }
    if (hasStage !== 't') return { outcome: 'stage-lost' }
    if (foundLength !== null && foundLength !== undefined) {
      const entry = entryOf(
        key,
        BigInt(foundLength),
        held === null ? null : Number(held),
        foundLocator as Locator | null
      )
      return { outcome: 'existed', entry }
    }
    return bytes.kind === 'none' && isSeen !== 't' ? { outcome: 'absent' } : AGAIN
  }

  #ask(text: string, key: string, ...more: (string | null)[]): Promise<(string | null)[]> {
    return ask(this.#handle, this.#pool.textOf(text), [key, this.#pid, this.#xid, ...more])
  }
}

async function transactionOf(handle: Handle): Promise<[pid: string, xid: string]> {
  const [pid, xid, isolation, isReadOnly] = await ask(handle, SESSION, [])
  if (typeof pid !== 'string' || typeof xid !== 'string') throw refused(HANDLE)
  const isSame = (await ask(handle, SAME, [pid, xid])).length > 0
  if (!isSame) throw refused('an open transaction, as `sql.begin` hands it out')
  // Above it, statements do not see what others commit meanwhile, and what they do not see they cannot protect from.
  if (isolation !== 'read committed' && isolation !== 'read uncommitted') {
    throw refused('a transaction of isolation READ COMMITTED')
  }
  if (isReadOnly !== 'off') throw refused('a transaction that may write')
  return [pid, xid]
}

/** Whether the session is where the pool is: neither names nor identifiers tell a server from a copy of it, a lock does. */
async function checkPlace(pool: Pool, handle: Handle, call: Call): Promise<void> {
  const sees = await pool.sessions.transaction(call, async session => {
    const name = [randomInt(2 ** 31), randomInt(2 ** 31)]
    await session.rows(HANDSHAKE, name)
    return ask(handle, SEES, [...name.map(String), `${session.pid}`])
  })
  if (sees.length === 0) throw refused('a transaction in the database that the pool is in')
}

/** The first row, empty where there is none. @throws what the driver does, without what it knows of statement and values. */
async function ask(handle: Handle, text: string, params: readonly (string | null)[]): Promise<(string | null)[]> {
  try {
    const [row] = await handle.unsafe(text, params, { prepare: true }).raw()
    return Array.from(row ?? [], value => (value === null ? null : Buffer.from(value).toString('utf8')))
  } catch (error) {
    throw withoutSecrets(error)
  }
}

function handleOf(transaction: unknown): Handle {
  const isHandle = typeof transaction === 'function' && typeof Reflect.get(transaction, 'unsafe') === 'function'
  if (!isHandle) throw refused(HANDLE)
  return transaction as unknown as Handle
}

function refused(expected: string): InvalidArgumentError {
  return new InvalidArgumentError('transaction', expected)
}

function ended(): EngineFault {
  return new EngineFault('conflict', 'the transaction has ended')
}
