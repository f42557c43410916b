/**
 * One write transaction. It takes the write lock when it begins: one that read first and wrote later would fail at once
 * when somebody wrote in between, and no waiting helps.
 */
import type { Connection } from './connection.js'

export interface Transaction {
  readonly at: Connection
  /** The time of the transaction, in milliseconds since 1970. */
  readonly now: number
}

/**
 * Runs `work` on a connection that was attached in this turn, and commits. `synced`: to the disk, whatever the pool's
 * durability. When this returns the effect is where it was promised to be; when it throws nothing is left of it in the pool.
 * @throws what `work` or SQLite threw; EngineFault `transient` if the file is not the one under its path any more.
 */
export function transact<T>(at: Connection, synced: boolean, work: (transaction: Transaction) => T): T {
  at.readyToWrite()
  const raised = synced && at.durability === 'os'
  if (raised) at.setDurability('disk')
  try {
    at.exec('BEGIN IMMEDIATE')
    const answer = work({ at, now: Date.now() })
    at.exec('COMMIT')
    // What went into a file that lost its name meanwhile is gone with it.
    at.checkPresent()
    at.proveDurability(raised ? 'disk' : at.durability)
    return answer
  } catch (error) {
    at.rollback()
    throw error
  } finally {
    if (raised) at.setDurability(at.durability)
  }
}
