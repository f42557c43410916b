/**
 * One write transaction. It takes the write lock when it begins: one that read first and wrote later would fail at once
 * when somebody wrote in between, and no waiting helps.
 */
import type { Connection } from './connection.js'

const LAST_BODY = 'SELECT coalesce(max(id), 0) FROM bodies'
const HAS_CANDIDATES = 'SELECT EXISTS (SELECT 1 FROM gc_window)'

export class Transaction {
  readonly at: Connection
  /** The time of the transaction, in milliseconds since 1970. */
  readonly now = Date.now()
  /** The window delay of the pool, once the contract stamp was checked. */
  windowDelayMs: number | undefined
  #lastBody: number | undefined
  #hasCandidates: boolean | undefined

  constructor(at: Connection) {
    this.at = at
  }

  // What follows is asked once for all jobs of a transaction: it makes a put five statements instead of eight.

  /** The number that the next inline body gets; nobody else can make one meanwhile. */
  get nextBody(): number {
    this.#lastBody ??= this.at.row<[number]>(LAST_BODY)?.[0] as number
    return this.#lastBody + 1
  }

  /** Says that the number was used. */
  bodyMade(): void {
    this.#lastBody = this.nextBody
  }

  /** Whether the window has a row at all that a put or pin might have to cancel. */
  get hasCandidates(): boolean {
    this.#hasCandidates ??= this.at.row<[number]>(HAS_CANDIDATES)?.[0] === 1
    return this.#hasCandidates
  }

  /** Says that a row of the window was written. */
  candidateMade(): void {
    this.#hasCandidates = true
  }
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
    const answer = work(new Transaction(at))
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
