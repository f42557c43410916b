/** The sessions of one store with one server: few, borrowed for a moment or held for a while, replaced when they die. */
import { type Call, EngineFault } from '@alkblobs/core/engine'
import { type CheckedConfig, type ConnectionConfig, checkConfig, type Timeouts } from './config.js'
import { Connection } from './connection.js'
import { remaining } from './deadline.js'
import { Held, type HeldSession } from './held.js'
import { type LostAnswer, settle } from './outcome.js'
import { checkProcess, checkProxy } from './pooling.js'
import { Places, type Use } from './queue.js'
import { over, type Session } from './session.js'
import { type Attempt, type Exchange, inExchange, inTransaction } from './transaction.js'

/** A session that nobody used for so long is not worth a place on the server. */
const IDLE_MS = 60_000

export class Sessions {
  readonly #config: CheckedConfig
  readonly #timeouts: Timeouts
  readonly #places: Places
  /** Last used last, so that what is not needed grows old. */
  readonly #idle: { readonly connection: Connection; readonly timer: NodeJS.Timeout }[] = []
  readonly #open = new Set<Connection>()
  #isProxyTested: Promise<void> | undefined
  #isClosed = false

  /** Opens nothing. @throws InvalidArgumentError naming the field that is wrong. */
  constructor(config: ConnectionConfig, timeouts: Timeouts) {
    this.#config = checkConfig(config)
    this.#timeouts = timeouts
    this.#places = new Places(this.#config.poolMax)
  }

  /** Statements that are each a transaction of their own, on one session. */
  use<T>(call: Call, work: (session: Session) => Promise<T>): Promise<T> {
    return this.#borrow(call, connection => over(connection, call, work))
  }

  /**
   * The same for statements that may be said twice, such as those that only read: where the session turns out to be dead and had lain
   * idle before, another one is asked. There are only so many idle ones, and a new one is not excused.
   */
  async ask<T>(call: Call, work: (session: Session) => Promise<T>): Promise<T> {
    for (;;) {
      const attempt = await this.#borrow(call, (connection, isFresh) => askedOn(connection, isFresh, call, work))
      if (attempt !== undefined) return attempt.result
    }
  }

  /**
   * One transaction (READ COMMITTED): committed when this resolves, rolled back when it rejects, and only with an EngineFault
   * `outcome-unknown` it is not known which: the answer to the commit was lost, and nobody could say before the deadline. What lost against others (40001, 40P01, 55P03) is a `conflict` and may be run again.
   */
  transaction<T>(call: Call, work: (session: Session) => Promise<T>): Promise<T> {
    return this.#transaction(call, (connection, begun) => inTransaction(connection, call, work, begun))
  }

  /** The same in two messages each way: `decide` is told what the first statements answered, and waits for nothing. */
  exchange<T>(call: Call, exchange: Exchange<T>): Promise<T> {
    return this.#transaction(call, (connection, begun) => inExchange(connection, call, exchange, begun))
  }

  async #transaction<T>(
    call: Call,
    run: (connection: Connection, begun: () => void) => Promise<Attempt<T>>
  ): Promise<T> {
    for (;;) {
      const attempt = await this.#borrow(call, (connection, isFresh) => attemptOn(connection, isFresh, call, run))
      if (attempt === undefined) continue
      // Asked when the place is free again: whoever waits for one may be whom it takes to find out.
      if (attempt.lost !== undefined) await this.#settle(attempt.lost, call)
      return attempt.result
    }
  }

  /** A session of the caller's own, until it is released or lost; nobody gets it afterwards. */
  async hold(call: Call): Promise<HeldSession> {
    await this.#take('hold', call)
    let connection: Connection | undefined
    try {
      connection = (await this.#connection(call)).connection
      // How long a transaction of his may be silent, the holder decides.
      await over(connection, call, session => session.run('SET idle_in_transaction_session_timeout = 0'))
    } catch (error) {
      connection?.kill(error)
      this.#places.free('hold')
      throw error
    }
    return new Held(
      connection,
      () => this.#places.free('hold'),
      (lost, call) => this.#settle(lost, call)
    )
  }

  /** Ends every session, held ones too. Resolves when their sockets are closed; later calls are refused. */
  async close(): Promise<void> {
    this.#isClosed = true
    this.#places.refuseAll(closed())
    for (const { timer } of this.#idle.splice(0)) clearTimeout(timer)
    await Promise.all([...this.#open].map(connection => connection.end()))
  }

  #settle(lost: LostAnswer, call: Call): Promise<void> {
    return settle(lost, call, (attempt, look) => {
      if (this.#isClosed) return Promise.resolve('unknown')
      return this.#borrow(attempt, connection => over(connection, attempt, () => look(connection)))
    })
  }

  async #borrow<T>(call: Call, work: (connection: Connection, isFresh: boolean) => Promise<T>): Promise<T> {
    await this.#take('borrow', call)
    try {
      const { connection, isFresh } = await this.#connection(call)
      try {
        if (connection.isProxied) await over(connection, call, () => checkProcess(connection))
        return await work(connection, isFresh)
      } finally {
        this.#giveBack(connection)
      }
    } finally {
      this.#places.free('borrow')
    }
  }

  async #take(use: Use, call: Call): Promise<void> {
    if (this.#isClosed) throw closed()
    await this.#places.take(use, call)
  }

  /** The session used last, or a new one. */
  async #connection(call: Call): Promise<{ readonly connection: Connection; readonly isFresh: boolean }> {
    for (let idle = this.#idle.pop(); idle !== undefined; idle = this.#idle.pop()) {
      clearTimeout(idle.timer)
      if (!idle.connection.isAlive) continue
      idle.connection.isAwaited = true
      return { connection: idle.connection, isFresh: false }
    }
    const connection = await this.#connect(call)
    if (connection.isProxied) await this.#testProxy(connection, call)
    return { connection, isFresh: true }
  }

  async #connect(call: Call): Promise<Connection> {
    const connection = await Connection.open(this.#config, this.#timeouts, call)
    this.#open.add(connection)
    connection.lost.addEventListener('abort', () => this.#open.delete(connection), { once: true })
    if (this.#isClosed) connection.kill(closed())
    return connection
  }

  /** Once, with the first session; a test that was cut short is repeated by the next. */
  async #testProxy(connection: Connection, call: Call): Promise<void> {
    this.#isProxyTested ??= (async () => {
      const other = await this.#connect(call)
      try {
        await over(connection, call, () => over(other, call, () => checkProxy(connection, other)))
      } finally {
        await other.end()
      }
    })()
    try {
      await this.#isProxyTested
    } catch (error) {
      this.#isProxyTested = undefined
      connection.kill(error)
      throw error
    }
  }

  #giveBack(connection: Connection): void {
    if (!connection.isReusable || this.#isClosed) {
      void connection.end()
      return
    }
    const timer = setTimeout(() => {
      const index = this.#idle.findIndex(each => each.connection === connection)
      if (index >= 0) this.#idle.splice(index, 1)
      void connection.end()
    }, IDLE_MS)
    timer.unref()
    connection.isAwaited = false
    this.#idle.push({ connection, timer })
  }
}

/** What was asked, or `undefined` if the session is dead and others may be alive. */
async function askedOn<T>(
  connection: Connection,
  isFresh: boolean,
  call: Call,
  work: (session: Session) => Promise<T>
): Promise<{ readonly result: T } | undefined> {
  try {
    return { result: await over(connection, call, work) }
  } catch (error) {
    if (isFresh || connection.isAlive || call.signal?.aborted || remaining(call) <= 0) throw error
    return undefined
  }
}

/**
 * A transaction, or `undefined` if the session died unnoticed while it lay idle: nothing has begun, so another one may do it.
 * There are only so many idle ones, and a new one is not excused.
 */
async function attemptOn<T>(
  connection: Connection,
  isFresh: boolean,
  call: Call,
  run: (connection: Connection, begun: () => void) => Promise<Attempt<T>>
): Promise<Attempt<T> | undefined> {
  let isBegun = false
  try {
    return await run(connection, () => {
      isBegun = true
    })
  } catch (error) {
    if (isBegun || isFresh || connection.isAlive || call.signal?.aborted || remaining(call) <= 0) throw error
    return undefined
  }
}

function closed(): EngineFault {
  return new EngineFault('transient', 'the sessions are closed')
}
