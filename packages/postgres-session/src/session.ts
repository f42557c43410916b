/** What a user of a session sees, for as long as it is his. */
import { type Call, EngineFault } from '@alkblobs/core/engine'
import type { Row } from './answers.js'
import type { Connection } from './connection.js'
import type { Statement } from './lane.js'
import type { Param, Value } from './values.js'

export interface Session {
  /** The server process that serves it; stays the same for as long as there is a session. */
  readonly pid: number
  /**
   * Rows as lists, in the order of the columns. Statements may be issued without awaiting the one before: they travel
   * together and run in order. A statement with parameters is prepared once for each session, so its text must be one of a
   * fixed number. @throws ServerError, or what the session died of.
   */
  rows<R extends readonly Value[]>(sql: string, params?: readonly Param[]): Promise<R[]>
  /** Says how many rows were touched. Without parameters the text may hold several statements, which are one transaction. */
  run(sql: string, params?: readonly Param[]): Promise<number>
  /**
   * Rows in the binary form of their types, parameters too: bytes cost a quarter of what they cost as hexadecimal text. Values that are
   * long have memory of their own, or that of the statement's `room`. Long parameters must stay as they are until it settles. It runs in order
   * with statements of the other methods, and does not travel with them: either waits until the ones before are answered.
   */
  binaryRows(statement: Statement): Promise<Row[]>
  /**
   * `COPY … FROM STDIN`: resolves when the server has taken all chunks. A chunk may be used again when the next one is asked for.
   * It waits for what was asked before, and what is asked meanwhile waits for it: chunks may not wait for a statement of this session.
   */
  copyIn(sql: string, chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void>
}

/** A session over a connection, until it is taken back. */
export class Borrowed implements Session {
  readonly #connection: Connection
  #isOver = false

  constructor(connection: Connection) {
    this.#connection = connection
  }

  get pid(): number {
    return this.#connection.pid
  }

  rows<R extends readonly Value[]>(sql: string, params?: readonly Param[]): Promise<R[]> {
    return heard(this.#mine(connection => connection.rows<R>(sql, params)))
  }

  run(sql: string, params?: readonly Param[]): Promise<number> {
    return heard(this.#mine(async connection => (await connection.run(sql, params)).count))
  }

  binaryRows(statement: Statement): Promise<Row[]> {
    return heard(this.#mine(connection => connection.binaryRows(statement, () => !this.#isOver)))
  }

  copyIn(sql: string, chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void> {
    return heard(this.#mine(connection => connection.copyIn(sql, chunks)))
  }

  /** From here on it answers nobody: the connection may be somebody else's already. */
  takeBack(): void {
    this.#isOver = true
  }

  async #mine<T>(work: (connection: Connection) => Promise<T>): Promise<T> {
    if (this.#isOver) throw new EngineFault('unknown', 'the session was given back')
    return work(this.#connection)
  }
}

/**
 * Statements that travel together die together, while their user awaits the first. That the others reject must not end the
 * process; the user hears of the first, and whoever awaits the others of theirs.
 */
export function heard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

/**
 * Runs work over the connection within the call's patience. Work that waits for something else when the connection ends is
 * left to itself: its session answers nobody any more.
 */
export async function over<T>(connection: Connection, call: Call, work: (session: Session) => Promise<T>): Promise<T> {
  const unbind = connection.bindTo(call)
  const session = new Borrowed(connection)
  try {
    return await connection.until(work(session))
  } finally {
    session.takeBack()
    unbind()
  }
}
