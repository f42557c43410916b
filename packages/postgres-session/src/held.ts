/** A session of one's own: for a lock that lives as long as it, or a transaction that lasts. */
import { type Call, EngineFault } from '@alkblobs/core/engine'
import type { Row } from './answers.js'
import type { Connection } from './connection.js'
import type { Statement } from './lane.js'
import type { Begun, LostAnswer } from './outcome.js'
import { heard, over, type Session } from './session.js'
import { begin, commit, rollback } from './transaction.js'
import type { Param, Value } from './values.js'

/** Longest one statement may take that is asked without a call of its own. */
const STATEMENT_MS = 30_000

export interface HeldSession extends Session {
  /** Fires when the session is over, whoever ended it; its locks are free then or will be soon. */
  readonly lost: AbortSignal
  /** Runs statements within the patience of this call; the session's own methods give each 30 seconds. */
  during<T>(call: Call, work: (session: Session) => Promise<T>): Promise<T>
  /** Opens a transaction that lasts until `commit` or `rollback`. */
  begin(call: Call): Promise<void>
  /**
   * Resolves once it is committed, though the session may have ended in it. @throws EngineFault `outcome-unknown` if the answer was
   * lost and nobody could say what became of it; with any other error it was rolled back.
   */
  commit(call: Call): Promise<void>
  /** Never throws: a session that does not answer is ended, which rolls back. */
  rollback(call: Call): Promise<void>
  /** Ends the session in good order; idempotent, never throws. */
  release(): Promise<void>
  /** Ends it at once; what it was asked rejects. */
  destroy(): void
}

export class Held implements HeldSession {
  readonly #connection: Connection
  readonly #settle: (lost: LostAnswer, call: Call) => Promise<void>
  /** The transaction that was begun last. */
  #begun: Begun | undefined

  /** `ended` is told once, when the connection is gone; `settle` finds out what became of a commit. */
  constructor(connection: Connection, ended: () => void, settle: (lost: LostAnswer, call: Call) => Promise<void>) {
    this.#connection = connection
    this.#settle = settle
    if (connection.isAlive) connection.lost.addEventListener('abort', ended, { once: true })
    else ended()
  }

  get pid(): number {
    return this.#connection.pid
  }

  get lost(): AbortSignal {
    return this.#connection.lost
  }

  during<T>(call: Call, work: (session: Session) => Promise<T>): Promise<T> {
    return over(this.#connection, call, work)
  }

  rows<R extends readonly Value[]>(sql: string, params?: readonly Param[]): Promise<R[]> {
    return heard(this.during(anyCall(), session => session.rows<R>(sql, params)))
  }

  run(sql: string, params?: readonly Param[]): Promise<number> {
    return heard(this.during(anyCall(), session => session.run(sql, params)))
  }

  binaryRows(statement: Statement): Promise<Row[]> {
    return heard(this.during(anyCall(), session => session.binaryRows(statement)))
  }

  /** The producer may be anybody, so only the end of the session bounds it. */
  copyIn(sql: string, chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void> {
    return heard(this.#connection.copyIn(sql, chunks))
  }

  async begin(call: Call): Promise<void> {
    const connection = this.#connection
    const unbind = connection.bindTo(call)
    try {
      this.#begun = await begin(connection, call)
    } finally {
      unbind()
    }
  }

  async commit(call: Call): Promise<void> {
    const lost = await commit(this.#connection, this.#begun, call)
    // The session has ended, so its place is free for whoever asks.
    if (lost !== undefined) await this.#settle(lost, call)
  }

  rollback(call: Call): Promise<void> {
    return rollback(this.#connection, call)
  }

  release(): Promise<void> {
    return this.#connection.end()
  }

  destroy(): void {
    this.#connection.kill(new EngineFault('transient', 'the session was ended by its holder'))
  }
}

function anyCall(): Call {
  return { deadlineMs: performance.now() + STATEMENT_MS }
}
