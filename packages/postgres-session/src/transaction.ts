/**
 * BEGIN, the work, COMMIT, and what is known when one of them fails.
 *
 * | what happened | what is known |
 * |---|---|
 * | BEGIN or the work failed | rolled back: by us, or by the server when it notices that we are gone |
 * | the server answered COMMIT with an ERROR | rolled back |
 * | it answered with the tag ROLLBACK | the work had swallowed an error; rolled back |
 * | anything else instead of the answer | nothing: somebody else has to ask, see `outcome.ts` |
 *
 * FATAL is no answer: a server that is told to stop while it waits for a replica has committed and says FATAL.
 */
import { type Call, EngineFault } from '@alkblobs/core/engine'
import type { Connection } from './connection.js'
import { remaining, within } from './deadline.js'
import { ServerError, unasked } from './failure.js'
import type { Answer, Statement } from './lane.js'
import { type Begun, LostAnswer } from './outcome.js'
import { Borrowed, type Session } from './session.js'

const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED'
/** The number by which a lost answer can be asked for comes with BEGIN, in one message; a standby, which gives none, may read. */
const NUMBER = `SELECT
  CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_current_xact_id()::text END,
  CASE WHEN NOT pg_catalog.pg_is_in_recovery() THEN pg_catalog.pg_current_wal_flush_lsn()::text END`
/** A rollback has nothing to wait for; a server that takes longer is not there. */
const ROLLBACK_MS = 1_000
/** The part of a call's patience that a commit may wait for its answer; the rest is for asking what became of it. */
const ANSWER_PART = 0.75

/** What the work answered, and whether the answer to its commit is missing. */
export interface Attempt<T> {
  readonly result: T
  readonly lost: LostAnswer | undefined
}

/** A transaction of which all that follows is known when its first statements are answered. */
export interface Exchange<T> {
  /** For a session of this process. */
  readonly first: (pid: number) => readonly Statement[]
  /** @throws to have it rolled back. */
  readonly decide: (answers: readonly Answer[]) => Decision<T>
}

export interface Decision<T> {
  readonly result: T
  /** What is done before it is committed. */
  readonly last: readonly Statement[]
}

/** Runs the work in a transaction on a connection that has none open; `begun` is told when there is something to undo. */
export async function inTransaction<T>(
  connection: Connection,
  call: Call,
  work: (session: Session) => Promise<T>,
  begun: () => void
): Promise<Attempt<T>> {
  const unbind = connection.bindTo(call)
  try {
    // Waited for: whatever travelled along would be done for good, outside of a transaction, if somebody cancelled this very statement.
    const mark = await begin(connection, call)
    begun()
    const result = await worked(connection, call, work)
    unbind()
    // Not raced against the connection's end as the work was: that end means something else from here on.
    return { result, lost: await commit(connection, mark, call) }
  } finally {
    unbind()
  }
}

/** Opens a transaction. `undefined` where the server gave it no number. */
export async function begin(connection: Connection, call: Call): Promise<Begun | undefined> {
  const beganMs = performance.now()
  try {
    const [row] = await connection.rows<[string | null, string | null]>(`${BEGIN}; ${NUMBER}`)
    return begunBy(connection, beganMs, row)
  } catch (error) {
    // It may have failed half-way, in an open transaction.
    await rollback(connection, call)
    throw error
  }
}

function begunBy(
  { pid, startedAt, origin }: Connection,
  beganMs: number,
  [xid, flushedLsn]: readonly (string | null | undefined)[] = []
): Begun | undefined {
  return typeof xid === 'string' && typeof flushedLsn === 'string'
    ? { xid, flushedLsn, beganMs, pid, startedAt, origin }
    : undefined
}

/**
 * The same in two messages: BEGIN with what comes first, COMMIT with what comes last. What follows a BEGIN that is refused or cancelled
 * is passed over by the server, so nothing has to wait for it; and so is a COMMIT behind a statement that failed.
 */
export async function inExchange<T>(
  connection: Connection,
  call: Call,
  { first, decide }: Exchange<T>,
  begun: () => void
): Promise<Attempt<T>> {
  const unbind = connection.bindTo(call)
  try {
    const beganMs = performance.now()
    const statements = first(connection.pid)
    const { answers, error } = await connection.exchange([{ text: BEGIN, once: true }, { text: NUMBER }, ...statements])
    let decision: Decision<T>
    try {
      if (error !== undefined) throw error
      begun()
      decision = decide(answers.slice(2))
    } catch (reason) {
      await rollback(connection, call)
      throw reason
    }
    const mark = begunBy(
      connection,
      beganMs,
      answers[1]?.rows[0]?.map(value => value?.toString() ?? null)
    )
    unbind()
    return { result: decision.result, lost: await commit(connection, mark, call, decision.last) }
  } finally {
    unbind()
  }
}

async function worked<T>(connection: Connection, call: Call, work: (session: Session) => Promise<T>): Promise<T> {
  const session = new Borrowed(connection)
  try {
    return await connection.until(work(session))
  } catch (error) {
    session.takeBack()
    await rollback(connection, call)
    throw error
  } finally {
    session.takeBack()
  }
}

/**
 * Commits, with statements that go before it in the same message; the signal of the call has no say any more. Answers what is missing if
 * the answer is, and the connection has ended then. @throws if it was rolled back.
 */
export async function commit(
  connection: Connection,
  begun: Begun | undefined,
  call: Call,
  last: readonly Statement[] = []
): Promise<LostAnswer | undefined> {
  const unbind = bindCommit(connection, call)
  try {
    const tag = await committed(connection, last)
    if (tag === 'COMMIT') return undefined
    if (tag !== 'ROLLBACK') throw unasked()
  } catch (error) {
    if (!(error instanceof ServerError && error.severity === 'ERROR')) {
      connection.kill(error)
      return new LostAnswer(begun, error)
    }
    // What failed may be a statement before the COMMIT, which was then passed over.
    if (last.length > 0) await rollback(connection, call)
    throw error
  } finally {
    unbind()
  }
  throw new EngineFault('unknown', 'a statement of the transaction had failed, so it was rolled back')
}

/** What the server calls what it did. */
async function committed(connection: Connection, last: readonly Statement[]): Promise<string> {
  if (last.length === 0) return (await connection.run('COMMIT')).command
  const { answers, error } = await connection.exchange([...last, { text: 'COMMIT', once: true }])
  const answer = answers[last.length]
  // Once it is answered, no error that comes behind it takes it back.
  if (answer !== undefined) return answer.command
  throw error ?? new EngineFault('transient', 'a commit was not answered')
}

/** @throws what the connection has ended of, or for a deadline that has passed, before anything was asked. */
function bindCommit(connection: Connection, call: Call): () => void {
  if (connection.lost.aborted) throw connection.lost.reason
  try {
    return connection.bindTo(within({ deadlineMs: call.deadlineMs }, ANSWER_PART * remaining(call)))
  } catch (error) {
    connection.kill(error)
    throw error
  }
}

/** Rolls back if the connection is there; if it does not answer, it is ended, which comes to the same. */
export async function rollback(connection: Connection, call: Call): Promise<void> {
  if (!connection.isAlive) return
  const late = setTimeout(
    () => connection.kill(new EngineFault('transient', 'a rollback was not answered')),
    Math.max(0, remaining(within(call, ROLLBACK_MS)))
  )
  // Whatever it says, the transaction is over, and what was wrong before is what the caller should hear.
  await connection.run('ROLLBACK').catch(error => connection.kill(error))
  clearTimeout(late)
}
