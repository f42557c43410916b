/**
 * Keeps an exclusive claim: a session advisory lock on a session held for nothing else, which ends with its process.
 *
 * A session can be lost while its process lives on, and somebody else may take the lock then. Hence the fence: a counter beside
 * the claim, raised by whoever takes the lock, and compared in every transaction that makes or removes a body, with the row locked
 * against being raised before that transaction ends. A holder that lost its session takes the lock again, and goes on if the
 * fence says that nobody had it in between; otherwise it makes and removes nothing more.
 */
import { type Call, EngineFault } from '@alkblobs/core/engine'
import type { HeldSession, Session, Sessions } from '@alkblobs/postgres-session'
import { claimLock } from '../names.js'
import type { Tables } from '../schema.js'

/** Longest the server is given to free the lock by name, in milliseconds. */
const UNLOCK_MS = 1_000

export class Holder {
  readonly #sessions: Sessions
  readonly #schema: string
  readonly #tables: Tables
  #session: HeldSession
  #fence: string
  #retaking: Promise<void> | undefined

  private constructor(sessions: Sessions, schema: string, tables: Tables, session: HeldSession, fence: string) {
    this.#sessions = sessions
    this.#schema = schema
    this.#tables = tables
    this.#session = session
    this.#fence = fence
  }

  /** Takes the lock; `undefined` while another process, or another store of this one, has it. */
  static async take(sessions: Sessions, schema: string, tables: Tables, call: Call): Promise<Holder | undefined> {
    const session = await lock(sessions, schema, call)
    if (session === undefined) return undefined
    try {
      const raise = `UPDATE ${tables.claim} SET fence = fence + 1 RETURNING fence::text`
      const [row] = await session.during(call, step => step.rows<[string]>(raise))
      return new Holder(sessions, schema, tables, session, (row as [string])[0])
    } catch (error) {
      session.destroy()
      throw error
    }
  }

  /** What the fence must say in every transaction that makes or removes a body. */
  get fence(): string {
    return this.#fence
  }

  /** Returns while the lock is held. @throws EngineFault `conflict` if it is not to be had now, or another process had it meanwhile. */
  async ensure(call: Call): Promise<void> {
    if (!this.#session.lost.aborted) return
    this.#retaking ??= this.#retake(call).finally(() => {
      this.#retaking = undefined
    })
    await this.#retaking
  }

  async release(): Promise<void> {
    if (this.#session.lost.aborted) return
    // The lock ends with the session; released first, so that it is free when this resolves, unless the server is silent.
    const call = { deadlineMs: performance.now() + UNLOCK_MS }
    const unlock = (step: Session) => step.rows('SELECT pg_advisory_unlock($1::bigint)', [claimLock(this.#schema)])
    await this.#session.during(call, unlock).catch(endsWithSession)
    await this.#session.release()
  }

  async #retake(call: Call): Promise<void> {
    const session = await lock(this.#sessions, this.#schema, call)
    // It may be our own lost session that has it: the server has not noticed yet, and the next call tries again.
    if (session === undefined) throw new EngineFault('conflict', 'the lock of this in-memory pool is not free')
    try {
      const look = `SELECT fence::text FROM ${this.#tables.claim}`
      const [row] = await session.during(call, step => step.rows<[string]>(look))
      if (row?.[0] !== this.#fence) throw taken()
      this.#session = session
    } catch (error) {
      session.destroy()
      throw error
    }
  }
}

async function lock(sessions: Sessions, schema: string, call: Call): Promise<HeldSession | undefined> {
  const session = await sessions.hold(call)
  try {
    const take = 'SELECT pg_try_advisory_lock($1::bigint)'
    const [row] = await session.during(call, step => step.rows<[boolean]>(take, [claimLock(schema)]))
    if (row?.[0] === true) return session
    await session.release()
    return undefined
  } catch (error) {
    session.destroy()
    throw error
  }
}

/** A lock that was not freed by name is freed by the end of its session. */
function endsWithSession(): void {}

function taken(): EngineFault {
  return new EngineFault(
    'conflict',
    'the connection that held this in-memory pool was lost and another process took the pool over; open the store again'
  )
}
