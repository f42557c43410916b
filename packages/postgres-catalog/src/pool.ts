/** What every part of the catalog works with: sessions, the schema, whether a pool is there, the form of keys. */
import { type Algorithm, type BlobKey, type Call, EngineFault, type StageId } from '@alkblobs/core/engine'
import type { Answer, Decision, Session, Sessions, Statement } from '@alkblobs/postgres-session'
import { Connection } from './connection.js'
import { CATALOG_PART, Layout } from './schema.js'
import { isMissing, untilFree } from './waiting.js'

/**
 * Plans are kept for as long as a session lives, and one that was made while a table was small would read the whole table when
 * it has grown. Every statement here finds its rows by an index, so none may do without; and pages come in the order of one, so
 * none may collect all that follows and sort it. For the same reason what is looked up for each key is a subquery with a value:
 * for EXISTS the server may read the whole index into a hash, once for all keys.
 */
const BY_INDEX = ['SET enable_seqscan = off', 'SET enable_bitmapscan = off']

export interface PoolSettings {
  readonly schema: string
  readonly algorithm: Algorithm
  readonly lockTimeoutMs: number
  /** Tables of the engine that may lie in the schema beside the catalog's. */
  readonly beside?: readonly string[]
  /** Where the lease's session comes from, if the others are not to make room for it. */
  readonly leaseSessions?: Sessions
}

/** See `Exchange`; the first statements are the same for every session. */
export interface PoolExchange<T> {
  readonly first: readonly Statement[]
  readonly decide: (answers: readonly Answer[]) => Decision<T>
}

export class Pool {
  readonly sessions: Sessions
  readonly leaseSessions: Sessions
  readonly algorithm: Algorithm
  readonly lockTimeoutMs: number
  /** Stages that a transaction of the application's has locked and did not publish: whoever took them back would wait for its end. */
  readonly lockedStages = new Set<StageId>()
  readonly #layout: Layout
  #isThere = false
  /** The server's processes whose sessions have been told so. */
  readonly #told = new Set<number>()

  constructor(
    sessions: Sessions,
    { schema, algorithm, lockTimeoutMs, beside, leaseSessions = sessions }: PoolSettings
  ) {
    this.sessions = sessions
    this.leaseSessions = leaseSessions
    this.algorithm = algorithm
    this.lockTimeoutMs = lockTimeoutMs
    this.#layout = new Layout(schema, CATALOG_PART, beside)
  }

  get schema(): string {
    return this.#layout.statements.schema
  }

  /** Statements outside a transaction: one, or several that need not be seen together. `absent` answers while there is no pool. */
  ask<T>(call: Call, absent: () => T, work: (at: Connection) => Promise<T>): Promise<T> {
    return this.#whereThere(call, absent, step => this.sessions.ask(call, step), work)
  }

  /** A transaction, run again while others stand in its way; so all it knows it reads in the transaction itself. */
  write<T>(call: Call, absent: () => T, work: (at: Connection) => Promise<T>): Promise<T> {
    return this.#whereThere(call, absent, step => this.sessions.transaction(call, step), work)
  }

  /** The same, once: for work that knows itself when to run again. */
  once<T>(call: Call, absent: () => T, work: (at: Connection) => Promise<T>): Promise<T> {
    return this.on(step => this.sessions.transaction(call, step), call, absent, work)
  }

  /** Makes the schema and its tables, if they are not there. */
  async create(call: Call): Promise<void> {
    await untilFree(call, this.lockTimeoutMs, () => this.#layout.make(this.sessions, call))
  }

  /** The text of a statement, for a session of somebody else's. */
  textOf(statement: string): string {
    return this.#layout.statements.of(statement)
  }

  /** A session that the catalog's statements can be said to. */
  connection(session: Session): Connection {
    return new Connection(session, this.#layout.statements)
  }

  /** Whether there is a pool's schema; one of an earlier layout is brought up to date. @throws EngineFault `foreign`, `newer`. */
  async isThere(call: Call): Promise<boolean> {
    if (this.#isThere) return true
    const version = await this.sessions.ask(call, session => this.#layout.version(session))
    if (version === 0) return false
    if (version < this.#layout.latest) await this.create(call)
    this.#isThere = true
    return true
  }

  /** The written form of a key that SQL has put into lower-case hexadecimal digits. */
  keyOf(hex: string): BlobKey {
    return `${this.algorithm}:${hex}` as BlobKey
  }

  #whereThere<T>(
    call: Call,
    absent: () => T,
    run: (step: (session: Session) => Promise<T>) => Promise<T>,
    work: (at: Connection) => Promise<T>
  ): Promise<T> {
    return untilFree(call, this.lockTimeoutMs, () => this.on(run, call, absent, work))
  }

  /** Work on a session that somebody else lends. */
  on<T>(
    lend: (step: (session: Session) => Promise<T>) => Promise<T>,
    call: Call,
    absent: () => T,
    work: (at: Connection) => Promise<T>
  ): Promise<T> {
    return this.#found(call, absent, () => lend(session => this.#byIndex(session, work)))
  }

  /** A transaction in two messages, once. Its statements name tables as those of a `Connection` do. */
  exchange<T>(call: Call, absent: () => T, { first, decide }: PoolExchange<T>): Promise<T> {
    const named = (statements: readonly Statement[]) =>
      statements.map(statement => ({ ...statement, text: this.textOf(statement.text) }))
    return this.#found(call, absent, async () => {
      let asked = 0
      const result = await this.sessions.exchange(call, {
        first: pid => {
          asked = pid
          return [...(this.#told.has(pid) ? [] : BY_INDEX.map(text => ({ text, once: true }))), ...named(first)]
        },
        decide: answers => {
          const { result, last } = decide(answers.slice(-first.length))
          return { result, last: named(last) }
        }
      })
      this.#told.add(asked)
      return result
    })
  }

  async #found<T>(call: Call, absent: () => T, work: () => Promise<T>): Promise<T> {
    if (!(await this.isThere(call))) return absent()
    try {
      return await work()
    } catch (error) {
      if (!isMissing(error)) throw error
      // Somebody removed the schema, or something in it: the first is absence, the second is not.
      this.#isThere = false
      if (await this.isThere(call)) throw error
      return absent()
    }
  }

  /** Sent ahead of a session's first statement. Undone by a rollback, or where a process has the number of an old one, it costs time. */
  async #byIndex<T>(session: Session, work: (at: Connection) => Promise<T>): Promise<T> {
    const at = this.connection(session)
    if (this.#told.has(session.pid)) return work(at)
    const told = session.run(BY_INDEX.join('; '))
    const [answer] = await Promise.all([work(at), told])
    this.#told.add(session.pid)
    return answer
  }
}

/** For work that needs a pool and has none: no pool is no place to write. */
export function noPool(): never {
  throw new EngineFault('foreign', 'there is no pool in the schema')
}
