/**
 * The open transaction in which a body longer than one window is written, on a session of its own.
 *
 *   begin    BEGIN; the lock of the stage; the server's own limit of idleness; an empty object
 *   append   a window to its place (`window-copy.ts`)
 *   commit   the claim is still ours; the row of lo_entries; COMMIT
 *   abandon  ROLLBACK: no row, and no page
 *
 * Between two steps the producer has `stageIdleTimeoutMs`. Then the transaction ends by itself, since one that stays open keeps the
 * whole server from vacuuming. The server has the same limit, a little later, for a process that was stopped.
 */
import { type BlobKey, type Call, digestOf, EngineFault, type StageId } from '@alkblobs/core/engine'
import type { HeldSession, Session } from '@alkblobs/postgres-session'
import { confirmIn, type Medium, missingIsAway } from '../medium.js'
import { stageLock } from '../names.js'
import { WindowCopy, windowCopy } from './window-copy.js'

/** How much later than ourselves the server ends a transaction that is idle. */
const SERVER_SLACK_MS = 5_000
/** A process may be stopped in the middle of a COPY, which is not idle to the server, and slow lines take their time. */
const STATEMENT_SLACK_MS = 60_000
/** Longest a copy may take to end when its transaction is given up. */
const GIVE_UP_MS = 1_000

export class HeldTransaction {
  readonly #medium: Medium
  readonly #stage: StageId
  readonly #session: HeldSession
  readonly #onIdle: (error: EngineFault) => void
  /** The object's number, valid inside this transaction alone. */
  #oid = 0
  #copy: WindowCopy | undefined
  #timer: NodeJS.Timeout | undefined
  #isOver = false

  private constructor(medium: Medium, stage: StageId, session: HeldSession, onIdle: (error: EngineFault) => void) {
    this.#medium = medium
    this.#stage = stage
    this.#session = session
    this.#onIdle = onIdle
  }

  /** `onIdle` is told when the producer was silent for too long; the transaction has to be abandoned then. */
  static async begin(
    medium: Medium,
    stage: StageId,
    call: Call,
    onIdle: (error: EngineFault) => void
  ): Promise<HeldTransaction> {
    const session = await medium.sessions.hold(call)
    const transaction = new HeldTransaction(medium, stage, session, onIdle)
    try {
      await session.begin(call)
      await transaction.#step(call, session => transaction.#prepare(session))
      return transaction
    } catch (error) {
      await transaction.abandon(call)
      throw error
    }
  }

  /** Sends the bytes to their place; they are the caller's again when this resolves, and there when `commit` does. */
  async append(bytes: Uint8Array, at: number, call: Call): Promise<void> {
    await this.#step(call, async () => {
      if (this.#copy?.isOpen !== true) {
        await this.#copy?.end()
        this.#copy = new WindowCopy(this.#session, windowCopy(this.#medium.tables.entries), this.#oid)
      }
      await this.#copy.write(bytes, at)
    })
  }

  /** Makes object and row durable. @throws EngineFault `outcome-unknown` if the answer was lost: the caller has to look. */
  async commit(key: BlobKey, length: number, call: Call): Promise<void> {
    await this.#step(call, async session => {
      await this.#copy?.end()
      await confirmIn(this.#medium, session)
      await session.run(
        `INSERT INTO ${this.#medium.tables.entries} (stage, loid, key, length) VALUES ($1::uuid, $2::oid, $3::bytea, $4::bigint)`,
        [this.#stage, this.#oid, digestOf(key), length]
      )
    })
    this.#end()
    await this.#session.commit(call)
    await this.#session.release()
  }

  /** Ends without a trace; idempotent. */
  async abandon(call: Call): Promise<void> {
    this.#end()
    const copy = this.#copy
    const soon = { deadlineMs: Math.min(call.deadlineMs, performance.now() + GIVE_UP_MS) }
    if (copy !== undefined) await this.#session.during(soon, () => copy.end()).catch(endsWithIt)
    await this.#session.rollback(call)
    await this.#session.release()
  }

  async #prepare(session: Session): Promise<void> {
    const { schema, stageIdleTimeoutMs } = this.#medium
    const [row] = await session.rows<[boolean, number]>(
      `SELECT pg_try_advisory_xact_lock($1::bigint), lo_from_bytea(0, ''),
         set_config('idle_in_transaction_session_timeout', $2, true), set_config('statement_timeout', $3, true)`,
      [
        stageLock(schema, this.#stage),
        `${stageIdleTimeoutMs + SERVER_SLACK_MS}`,
        `${stageIdleTimeoutMs + STATEMENT_SLACK_MS}`
      ]
    )
    this.#oid = row?.[1] ?? 0
    if (row?.[0] !== true) throw new EngineFault('conflict', 'a body is being written under the stage already')
  }

  /** One step within its deadline; in between, the clock of idleness runs. */
  async #step(call: Call, step: (session: Session) => Promise<void>): Promise<void> {
    clearTimeout(this.#timer)
    await this.#session.during(call, step).catch(missingIsAway)
    if (this.#isOver) return
    const { stageIdleTimeoutMs } = this.#medium
    this.#timer = setTimeout(() => {
      const message = `no bytes came for ${stageIdleTimeoutMs} ms (stageIdleTimeoutMs), so the body was given up`
      this.#onIdle(new EngineFault('transient', message))
    }, stageIdleTimeoutMs)
    // A process that has nothing else to do may end; the server rolls back what it leaves.
    this.#timer.unref()
  }

  #end(): void {
    this.#isOver = true
    clearTimeout(this.#timer)
  }
}

/** A copy that fails while its transaction is given up has nothing more to say; one that does not end takes the session with it. */
function endsWithIt(): void {}
