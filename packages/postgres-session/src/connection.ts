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
import postgres from 'postgres'
import { endsSession } from './classify.js'
import type { CheckedConfig, Timeouts } from './config.js'
import { copyIn, copyOut } from './copy.js'
import { checkPatience, watch } from './deadline.js'
import { withoutSecrets } from './failure.js'
import { type Origin, originOf } from './outcome.js'
import { SETTING_STATEMENT, settingParams } from './settings.js'
import { openTransport } from './transport.js'
import { type Column, decodeRow, encode, type Param, UNTOUCHED, type Value } from './values.js'

/** Longest a friendly goodbye may take. */
const GOODBYE_MS = 1_000

/** The driver's answer to a statement; of several statements, one each. */
interface Answer extends ReadonlyArray<(Buffer | null)[]> {
  readonly count: number | null
  readonly command: string | null
  readonly columns: readonly Column[] | null
  readonly state: { readonly pid: number | null } | null
}
/** A statement of the driver's. `resolve` and `reject` are how it tells the outcome, to whoever has put himself there. */
export interface DriverQuery extends Promise<Answer> {
  resolve: (value: unknown) => void
  reject: (error: unknown) => void
  raw(): DriverQuery
  execute(): DriverQuery
}

export class Connection {
  readonly #config: CheckedConfig
  readonly #sql: postgres.Sql
  readonly #waiting = new Set<(error: unknown) => void>()
  readonly #lost = new AbortController()
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
    this.#sql = postgres(this.#options())
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
    return Array.from(answer, row => decodeRow(row, columns) as readonly Value[] as R)
  }

  /** Runs what answers no rows; says how many it touched, and what the server calls what it did. */
  async run(sql: string, params: readonly Param[] = []): Promise<{ readonly count: number; readonly command: string }> {
    const answer = await this.#ask(sql, params)
    return { count: answer.count ?? 0, command: answer.command ?? '' }
  }

  /** See `Session.binaryRows`. */
  async binaryRows(query: string): Promise<(Buffer | null)[][]> {
    if (this.#fate !== undefined) throw this.#fate.error
    const text = `DECLARE alkblobs_rows BINARY NO SCROLL CURSOR FOR ${query}; FETCH ALL alkblobs_rows; CLOSE alkblobs_rows`
    const asked = this.#sql.unsafe(text) as unknown as DriverQuery
    const answers = (await this.#answer(asked.raw().execute())) as unknown as readonly Answer[]
    return Array.from(answers[1] ?? [])
  }

  copyIn(sql: string, chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>, sent?: () => void): Promise<void> {
    return copyIn(this.#lane(), this.#sql.unsafe(sql) as unknown as DriverQuery, chunks, sent)
  }

  copyOut(sql: string): AsyncIterable<Buffer> {
    return copyOut(this.#lane(), () => this.#sql.unsafe(sql) as unknown as DriverQuery)
  }

  /** Ends the connection and, with this reason, whatever is waiting for it. Nothing that was asked is known to have happened. */
  kill(reason: unknown): void {
    if (this.#fate !== undefined) return
    const error = withoutSecrets(reason)
    this.#fate = { error }
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
      throw withoutSecrets(error)
    }
  }

  /** Kills the connection when the call's patience ends, until the returned function is called. @throws if it has ended. */
  bindTo(call: Call): () => void {
    checkPatience(call)
    return watch(call, reason => this.kill(reason))
  }

  async #start(timeouts: Timeouts): Promise<void> {
    this.#socket = await this.until(openTransport(this.#config, socket => this.#adopt(socket)))
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

  #options(): postgres.Options<{ text: postgres.PostgresType<string> }> {
    const { user, password, database, host, port, applicationName } = this.#config
    const options = {
      host,
      port,
      user,
      password,
      database,
      ssl: false,
      max: 1,
      idle_timeout: 0,
      max_lifetime: null,
      connect_timeout: 0,
      keep_alive: null,
      backoff: () => 0,
      fetch_types: false,
      prepare: true,
      debug: false,
      types: UNTOUCHED,
      connection: { application_name: applicationName },
      sslnegotiation: null,
      onnotice: () => undefined,
      socket: () => this.#hand()
    }
    // The driver's types do not know of `socket`, which its documentation names.
    return options as unknown as postgres.Options<{ text: postgres.PostgresType<string> }>
  }

  #hand(): Promise<Socket> {
    const socket = this.#socket
    if (this.#isHanded || socket === undefined || this.#fate !== undefined) {
      return Promise.reject(new EngineFault('transient', 'the connection is gone'))
    }
    this.#isHanded = true
    return Promise.resolve(socket)
  }

  async #ask(sql: string, params: readonly Param[]): Promise<Answer> {
    if (this.#fate !== undefined) throw this.#fate.error
    const texts = params.map(encode)
    const options = texts.length === 0 ? { simple: true } : { prepare: true }
    const query = this.#sql.unsafe(sql, texts as string[], options) as unknown as DriverQuery
    const answer = await this.#answer(query.raw().execute())
    // Several statements in one text have several answers, in a plain list.
    return 'command' in answer ? answer : ((answer as readonly Answer[]).at(-1) as Answer)
  }

  #lane() {
    if (this.#fate !== undefined) throw this.#fate.error
    const socket = this.#socket as Socket
    return {
      socket,
      until: <T>(work: PromiseLike<T>) => this.until(work),
      kill: (reason: unknown) => this.kill(reason)
    }
  }
}
