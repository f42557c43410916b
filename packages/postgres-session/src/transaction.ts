/**
 * BEGIN, the work, COMMIT, and what is known when one of them fails.
 *
 * | what happened | what is known |
 * |---|---|
 * | BEGIN or the work failed | rolled back: by us, or by the server when it notices that we are gone |
 * | the server answered COMMIT with an ERROR | rolled back |
 * | it answered with the tag ROLLBACK | the work had swallowed an error; rolled back |
 * | anything else instead of the answer | nothing: `outcome-unknown` |
 *
 * FATAL is no answer: a server that is told to stop while it waits for a replica has committed and says FATAL.
 */
import { type Call, EngineFault } from '@alkblobs/core/engine'
import type { Connection } from './connection.js'
import { remaining, within } from './deadline.js'
import { ServerError } from './failure.js'
import { Borrowed, type Session } from './session.js'

export const BEGIN = 'BEGIN ISOLATION LEVEL READ COMMITTED'
/** A rollback has nothing to wait for; a server that takes longer is not there. */
const ROLLBACK_MS = 1_000

/** Runs the work in a transaction on a connection that has none open; `begun` is told when there is something to undo. */
export async function inTransaction<T>(
  connection: Connection,
  call: Call,
  work: (session: Session) => Promise<T>,
  begun: () => void
): Promise<T> {
  const unbind = connection.bindTo(call)
  try {
    await connection.run(BEGIN)
    begun()
    const result = await worked(connection, call, work)
    // Not raced against the connection's end as the work was: that end means something else from here on.
    await commit(connection)
    return result
  } finally {
    unbind()
  }
}

async function worked<T>(connection: Connection, call: Call, work: (session: Session) => Promise<T>): Promise<T> {
  const session = new Borrowed(connection)
  try {
    return await connection.until(work(session))
  } catch (error) {
    await rollback(connection, call)
    throw error
  } finally {
    session.takeBack()
  }
}

/** @throws EngineFault `outcome-unknown` if it may have happened; anything else if it has not. */
export async function commit(connection: Connection): Promise<void> {
  const answer = await connection.run('COMMIT').catch((error: unknown) => {
    if (error instanceof ServerError && error.severity === 'ERROR') throw error
    throw new EngineFault('outcome-unknown', 'the answer to a commit was lost', error)
  })
  if (answer.command === 'COMMIT') return
  throw new EngineFault('unknown', 'a statement of the transaction had failed, so it was rolled back')
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
