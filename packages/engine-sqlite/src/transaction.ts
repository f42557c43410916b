/**
 * One write transaction. It takes the write lock when it begins: one that read first and wrote later would fail at once
 * when somebody wrote in between, and no waiting helps.
 */
import type { Connection } from './connection.js'

const STATE = `
  SELECT protocol, window_delay_ms, (SELECT coalesce(max(id), 0) FROM bodies), EXISTS (SELECT 1 FROM gc_window) FROM meta`

/** What puts and pins ask of the pool, once for all jobs of a transaction: it makes a put four statements instead of eight. */
interface State {
  /** Of the pool's record; `undefined` where there is none yet. */
  readonly protocol: number | undefined
  readonly windowDelayMs: number
  lastBody: number
  hasCandidates: boolean
}

export class Transaction {
  readonly at: Connection
  /** The time of the transaction, in milliseconds since 1970. */
  readonly now = Date.now()
  #state: State | undefined

  constructor(at: Connection) {
    this.at = at
  }

  /** The pool's protocol and window delay as the record has them. */
  get stamp(): Pick<State, 'protocol' | 'windowDelayMs'> {
    return this.#asked
  }

  /** Says that the record was written. */
  recordChanged(): void {
    this.#state = undefined
  }

  /** The number that the next inline body gets; nobody else can make one meanwhile. */
  get nextBody(): number {
    return this.#asked.lastBody + 1
  }

  /** Says that the number was used. */
  bodyMade(): void {
    this.#asked.lastBody++
  }

  /** Whether the window has a row at all that a put or pin might have to cancel. */
  get hasCandidates(): boolean {
    return this.#asked.hasCandidates
  }

  /** Says that a row of the window was written. */
  candidateMade(): void {
    this.#asked.hasCandidates = true
  }

  get #asked(): State {
    this.#state ??= stateIn(this.at)
    return this.#state
  }
}

function stateIn(at: Connection): State {
  const [protocol, windowDelayMs, lastBody, hasCandidates] = at.row<[number | null, number | null, number, number]>(
    STATE
  ) ?? [null, null, 0, 0]
  return {
    protocol: protocol ?? undefined,
    windowDelayMs: windowDelayMs ?? 0,
    lastBody,
    hasCandidates: hasCandidates === 1
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
