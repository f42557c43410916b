/**
 * One connection to a server, and the certainty that nothing is ever asked of it after its death.
 *
 * The driver (`postgres` 3.4) loses statements of a dying connection, runs the rest of a dead transaction on a new one,
 * reconnects without end, and throws outside of every promise when it is called on a closed socket. Hence
 *   1. a driver instance has one connection and one socket, which is ours; asked for a second socket, it gets an error;
 *   2. every statement ends with the first of: its answer, the connection's death, the end of the call's patience, and the
 *      last of these kills the connection, because nobody knows what it is still doing;
 *   3. once dead, the driver instance is told to end, and never called again.
 */
import type { Socket } from 'node:net'
import { type Call, EngineFault } from '@alkblobs/core/engine'
import type postgres from 'postgres'
import type { Row } from './answers.js'
import { Channel } from './channel.js'
import { classifyPostgres, endsSession } from './classify.js'
import type { CheckedConfig, Timeouts } from './config.js'
import { copyIn } from './copy.js'
import { checkPatience, watch } from './deadline.js'
import { type Answer, type DriverQuery, openDriver } from './driver.js'
import { ServerError, unreadable, withoutSecrets } from './failure.js'
import { Lane, type Outcome, type Statement } from './lane.js'
import { type Origin, originOf } from './outcome.js'
import { SETTING_STATEMENT, settingParams } from './settings.js'
import { openTransport } from './transport.js'
import { type Speaker, Turns } from './turns.js'
import { decodeRow, encodeAll, type Param, type Value } from './values.js'

/** A prepared statement whose table has changed, or that somebody has dropped. */
const STALE = /^(0A000|26000)$/
/** Longest a friendly goodbye may take. */
const GOODBYE_MS = 1_000

export class Connection {
  readonly #config: CheckedConfig
  readonly #sql: postgres.Sql
  readonly #waiting = new Set<(error: unknown) => void>()
  readonly #lost = new AbortController()
  readonly #channel = new Channel(reason => this.kill(reason))
  readonly #lane = new Lane(this.#channel, reason => this.kill(reason))
  readonly #turns = new Turns()
  #socket: Socket | undefined
  #isHanded = false
  #fate: { readonly error: unknown } | undefined
  #isSpoiled = false
  /** The process that serves this session. */
  pid = 0
  /** When that process started, in seconds since 1970. */
  startedAt = ''
  /** Which server it is of, if that can be known. */
  origin: Origin | undefined
  /** When it was ready, on the clock of `performance.now()`. */
  openedMs = 0
  /** As in `server_version_num`. */
  serverVersion = 0
  /** Whether something between here and the server has answered for it, so that the process may change. */
  isProxied = false

  private constructor(config: CheckedConfig) {
    this.#config = config
    this.#sql = openDriver(config, () => this.#hand())
  }

  /** A connection that is ready for statements. @throws as the driver and the system do, without secrets. */
  static async open(config: CheckedConfig, timeouts: Timeouts, call: Call): Promise<Connection> {
    const connection = new Connection(config)
    const start = performance.now()
    const stop = watch(
      { ...call, deadlineMs: Math.min(call.deadlineMs, start + timeouts.connectTimeoutMs) },
      reason => {
        connection.kill(reason)
      }
    )
    try {
      await connection.#start(timeouts)
      return connection
    } catch (error) {
      connection.kill(error)
      throw error
    } finally {
      stop()
    }
  }

  /** Fires when the connection is dead, with the reason. */
  get lost(): AbortSignal {
    return this.#lost.signal
  }

  get isAlive(): boolean {
    return this.#fate === undefined
  }

  /** Whether somebody else may use it when its present user is done. */
  get isReusable(): boolean {
    return this.#fate === undefined && !this.#isSpoiled
  }

  /** Rows as lists of values. Of several statements in one text, the rows of the last. */
  async rows<R extends readonly Value[]>(sql: string, params: readonly Param[] = []): Promise<R[]> {
    const answer = await this.#ask(sql, params)
    const columns = answer.columns ?? []
    // The driver counts on where a statement has failed behind some rows: the next answer begins with as many that are not there.
    const rows = answer.filter(() => true)
    return rows.map(row => decodeRow(row, columns) as readonly Value[] as R)
  }

  /** Runs what answers no rows; says how many it touched, and what the server calls what it did. */
  async run(sql: string, params: readonly Param[] = []): Promise<{ readonly count: number; readonly command: string }> {
    const answer = await this.#ask(sql, params)
    return { count: answer.count ?? 0, command: answer.command ?? '' }
  }

  /** See `Session.binaryRows`. Not in a transaction a statement whose plan has become stale is prepared anew, if it still `isWanted`. */
  async binaryRows(statement: Statement, isWanted: () => boolean): Promise<Row[]> {
    const first = await this.exchange([statement])
    const isStale = first.error !== undefined && STALE.test(first.error.code)
    if (isStale) this.#lane.forget()
    const outcome = isStale && isWanted() ? await this.exchange([statement]) : first
    if (outcome.error !== undefined) throw first.error
    return outcome.answers[0]?.rows ?? []
  }

  /** Statements in one message, answered in one. Rejects only for a connection that ends. */
  async exchange(statements: readonly Statement[]): Promise<Outcome> {
    await this.#enter('lane')
    try {
      const outcome = await this.until(this.#lane.ask(statements))
      if (endsSession(outcome.error)) this.#isSpoiled = true
      return outcome
    } finally {
      this.#turns.leave()
    }
  }

  async copyIn(sql: string, chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>): Promise<void> {
    await this.#enter('copy')
    try {
      this.#channel.isCopying = true
      await copyIn(this.#passage(), this.#sql.unsafe(sql) as unknown as DriverQuery, chunks)
    } finally {
      this.#channel.isCopying = false
      this.#turns.leave()
    }
  }

  /** Ends the connection and, with this reason, whatever is waiting for it. Nothing that was asked is known to have happened. */
  kill(reason: unknown): void {
    if (this.#fate !== undefined) return
    const error = withoutSecrets(reason)
    this.#fate = { error }
    this.#channel.end()
    this.#socket?.destroy()
    // The driver settles what it still knows of; what it forgets has been rejected below. It is not called after this.
    this.#sql.end({ timeout: 0 }).catch(() => undefined)
    for (const fail of this.#waiting) fail(error)
    this.#waiting.clear()
    this.#lost.abort(error)
  }

  /** Says goodbye, so that the server frees everything at once. Resolves when the socket is closed. */
  async end(): Promise<void> {
    const socket = this.#socket
    if (this.#fate === undefined && socket !== undefined) {
      socket.ref()
      const closed = new Promise<void>(resolve => socket.once('close', () => resolve()))
      const late = setTimeout(() => this.kill(new EngineFault('transient', 'the session did not end')), GOODBYE_MS)
      // The driver waits for what it was asked itself, and knows nothing of exchanges.
      const turn = this.#turns.enter('driver')
      if (turn !== undefined) await Promise.race([turn, closed])
      this.#sql.end().catch(() => undefined)
      await closed
      clearTimeout(late)
    }
    this.kill(new EngineFault('transient', 'the session has ended'))
  }

  /** Whether the socket keeps the process alive: only while somebody waits for it. */
  set isAwaited(yes: boolean) {
    if (yes) this.#socket?.ref()
    else this.#socket?.unref()
  }

  /** Waits for something that goes on over this connection, no longer than it lives. */
  until<T>(work: PromiseLike<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.#fate !== undefined) {
        // What comes of it is nobody's business any more, and must not be an unhandled rejection.
        work.then(undefined, () => undefined)
        return reject(this.#fate.error)
      }
      this.#waiting.add(reject)
      work.then(
        value => {
          this.#waiting.delete(reject)
          resolve(value)
        },
        (error: unknown) => {
          this.#waiting.delete(reject)
          reject(error)
        }
      )
    })
  }

  /** Waits for an answer of the driver's. */
  async #answer<T>(work: PromiseLike<T>): Promise<T> {
    try {
      return await this.until(work)
    } catch (error) {
      if (endsSession(error)) this.#isSpoiled = true
      const told = withoutSecrets(error)
      // The driver stumbled over what the server said: nobody knows what it waits for now.
      if (!(told instanceof ServerError)) this.kill(classifyPostgres(told) === 'unknown' ? unreadable() : told)
      throw told instanceof ServerError ? told : this.#fate?.error
    }
  }

  /** Kills the connection when the call's patience ends, until the returned function is called. @throws if it has ended. */
  bindTo(call: Call): () => void {
    checkPatience(call)
    return watch(call, reason => this.kill(reason))
  }

  async #start(timeouts: Timeouts): Promise<void> {
    await this.until(openTransport(this.#config, this.#channel, socket => this.#adopt(socket)))
    const answer = await this.#ask(SETTING_STATEMENT, settingParams(this.#config, timeouts))
    const [row] = answer
    const [pid, version, startedAt] = row === undefined ? [] : decodeRow(row, answer.columns ?? [])
    this.pid = Number(pid)
    this.startedAt = String(startedAt)
    this.serverVersion = Number(version)
    this.isProxied = answer.state?.pid !== this.pid
    this.origin = await originOf(this)
    this.openedMs = performance.now()
  }

  /**
   * From its first moment on, a socket's end is the connection's: at the first sign, and before the driver hears of it, which
   * would tell the user, who would give the session back while it still seems to live.
   */
  #adopt(socket: Socket): void {
    this.#socket = socket
    if (this.#fate !== undefined) socket.destroy()
    const over = (error?: unknown) => {
      if (socket !== this.#socket) return
      this.kill(error ?? new EngineFault('transient', 'the connection was closed by the server or on the way'))
    }
    socket.on('error', over)
    socket.once('end', () => over())
    socket.once('close', () => over())
  }

  #hand(): Promise<unknown> {
    if (this.#isHanded || this.#fate !== undefined) {
      return Promise.reject(new EngineFault('transient', 'the connection is gone'))
    }
    this.#isHanded = true
    return Promise.resolve(this.#channel.driversSide)
  }

  async #ask(sql: string, params: readonly Param[]): Promise<Answer> {
    const texts = encodeAll(params)
    const turn = this.#enter('driver')
    // Not awaited without need: statements are sent in the turn in which they are asked for.
    if (turn !== undefined) await turn
    try {
      const options = texts.length === 0 ? { simple: true } : { prepare: true }
      const query = this.#sql.unsafe(sql, texts as string[], options) as unknown as DriverQuery
      const answer = await this.#answer(query.raw().execute())
      // Several statements in one text have several answers, in a plain list.
      return 'command' in answer ? answer : ((answer as readonly Answer[]).at(-1) as Answer)
    } finally {
      this.#turns.leave()
    }
  }

  /** @throws what the connection has ended of. */
  #enter(speaker: Speaker): Promise<void> | undefined {
    if (this.#fate !== undefined) throw this.#fate.error
    const turn = this.#turns.enter(speaker)
    return turn && this.until(turn)
  }

  #passage() {
    const socket = this.#socket as Socket
    return { socket, until: <T>(work: PromiseLike<T>) => this.#answer(work) }
  }
}
