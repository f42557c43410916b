/**
 * The right to sweep: a session advisory lock, named after the schema, on a session of its own. Every statement of a sweep that
 * reads, stages or removes runs on that very session, one transaction after the other: a session that has lost the lock has
 * ended, and what has ended cannot commit. The server frees the lock when the session ends, whoever ended it.
 *
 * Advisory locks are re-entrant within a session, so a second holder in this process is kept out by the session being another
 * one; the guard here only saves it the way to the server.
 */
import { type Call, type Catalog, EngineFault, type Lease } from '@alkblobs/core/engine'
import type { HeldSession, Session } from '@alkblobs/postgres-session'
import type { Connection } from '../connection.js'
import type { Pool } from '../pool.js'
import { advisoryKey } from '../schema.js'
import { refuseIfOver, untilFree } from '../waiting.js'
import { LiveKeys } from './live.js'
import { Pace } from './pace.js'

/** And whether the role may make temporary tables. */
const TAKE = `
  SELECT pg_catalog.pg_try_advisory_lock($1::bigint), pg_catalog.has_database_privilege(current_database(), 'TEMPORARY')`
const UNLOCK = 'SELECT pg_catalog.pg_advisory_unlock($1::bigint)'
/** Longest the server is given to free the lock by name. */
const UNLOCK_MS = 1_000

export class HeldLease implements Lease {
  readonly #session: HeldSession
  readonly #pool: Pool
  readonly #onRelease: () => void
  readonly #lost = new AbortController()
  /** Present where the role may make temporary tables. */
  readonly live?: LiveKeys
  /** Tables of the application that were read through under this lease. */
  readonly readThrough = new Set<object>()
  /** How its sweep gets on. */
  readonly pace = new Pace()
  #turn: Promise<unknown> = Promise.resolve()
  #isReleased = false

  constructor(session: HeldSession, pool: Pool, onRelease: () => void, hasTemporaryTables: boolean) {
    this.#session = session
    this.#pool = pool
    this.#onRelease = onRelease
    if (hasTemporaryTables) this.live = new LiveKeys(this)
    const { lost } = session
    if (lost.aborted) this.#lose(lost.reason)
    else lost.addEventListener('abort', () => this.#lose(lost.reason), { once: true })
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /**
   * Statements on the lease's session, when those before have ended. `absent` answers while there is no pool.
   * @throws EngineFault `conflict` if the lease is not held.
   */
  ask<T>(call: Call, absent: () => T, work: (at: Connection) => Promise<T>): Promise<T> {
    return this.#inTurn(call, begun => this.#pool.on(step => this.#session.during(begun, step), begun, absent, work))
  }

  /** A transaction on the lease's session, run again where others stand in its way. */
  write<T>(call: Call, absent: () => T, work: (at: Connection) => Promise<T>): Promise<T> {
    return this.#inTurn(call, begun =>
      untilFree(begun, this.#pool.lockTimeoutMs, () =>
        this.#pool.on(step => this.#transaction(begun, step), begun, absent, work)
      )
    )
  }

  /** Statements that need no pool. */
  say<T>(call: Call, work: (session: Session) => Promise<T>): Promise<T> {
    return this.#inTurn(call, begun => this.#session.during(begun, work))
  }

  async release(): Promise<void> {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#onRelease()
    // Ending the session ends the lock; but behind a proxy it may end here before it ends at the server, and whoever asks next
    // would find it held.
    const call = { deadlineMs: performance.now() + UNLOCK_MS }
    const unlock = (session: Session) => session.rows(UNLOCK, [advisoryKey('lease', this.#pool.schema)])
    await this.#session.during(call, unlock).catch(endsWithSession)
    await this.#session.release()
  }

  /** The step gets a call without a signal: cutting off a statement would end the session, and the lease with it. */
  #inTurn<T>(call: Call, step: (begun: Call) => Promise<T>): Promise<T> {
    const mine = this.#turn.then(async () => {
      this.#check()
      refuseIfOver(call)
      try {
        return await step({ deadlineMs: call.deadlineMs })
      } catch (error) {
        // The session may end a moment before it says so.
        if (this.#session.lost.aborted) this.#lose(this.#session.lost.reason)
        throw error
      }
    })
    this.#turn = mine.catch(() => undefined)
    return mine
  }

  async #transaction<T>(call: Call, work: (session: Session) => Promise<T>): Promise<T> {
    const session = this.#session
    await session.begin(call)
    let answer: T
    try {
      answer = await session.during(call, work)
    } catch (error) {
      await session.rollback(call)
      throw error
    }
    await session.commit(call)
    return answer
  }

  #check(): void {
    if (this.#isReleased || this.lost.aborted) throw leaseLost()
  }

  #lose(reason: unknown): void {
    // A session that ends because the lease was given back is no loss.
    if (!this.#isReleased) this.#lost.abort(new EngineFault('conflict', 'lease lost', reason))
  }
}

/** The leases of one open catalog: taken here, ended with it. */
export class Leases implements Pick<Catalog, 'lease'> {
  readonly #pool: Pool
  readonly #held = new Set<HeldLease>()
  #isTaking = false

  constructor(pool: Pool) {
    this.#pool = pool
    this.lease = this.lease.bind(this)
  }

  async lease(call: Call): Promise<Lease | undefined> {
    refuseIfOver(call)
    if (this.#isTaking || [...this.#held].some(({ lost }) => !lost.aborted)) return undefined
    this.#isTaking = true
    try {
      return await this.#take(call)
    } finally {
      this.#isTaking = false
    }
  }

  /** The lease as this catalog gave it. @throws EngineFault `conflict` for one that it did not give, or that is not held. */
  held(lease: Lease | undefined): HeldLease {
    if (!(lease instanceof HeldLease) || !this.#held.has(lease)) throw leaseLost()
    return lease
  }

  async endAll(): Promise<void> {
    for (const lease of this.#held) await lease.release()
  }

  async #take(call: Call): Promise<Lease | undefined> {
    const session = await this.#pool.leaseSessions.hold(call)
    try {
      const key = advisoryKey('lease', this.#pool.schema)
      const [answer] = await session.during(call, step => step.rows<[boolean, boolean]>(TAKE, [key]))
      const [isTaken, mayMake] = answer ?? [false, false]
      if (!isTaken) {
        await session.release()
        return undefined
      }
      const held: HeldLease = new HeldLease(session, this.#pool, () => this.#held.delete(held), mayMake)
      this.#held.add(held)
      return held
    } catch (error) {
      session.destroy()
      throw error
    }
  }
}

function leaseLost(): EngineFault {
  return new EngineFault('conflict', 'lease lost')
}

/** A lock that was not freed by name is freed by the end of its session. */
function endsWithSession(): void {}
