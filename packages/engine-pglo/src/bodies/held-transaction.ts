/**
 * The open transaction in which a body longer than one window is written, on a session of its own.
 *
 *   begin    BEGIN; the lock of the stage; the server's own limit of idleness; an empty object
 *   append   a window to its place, in a binary COPY of one row that is never kept
 *   commit   the claim is still ours; the row of lo_entries; COMMIT
 *   abandon  ROLLBACK: no row, and no page
 *
 * Between two steps the producer has `stageIdleTimeoutMs`. Then the transaction ends by itself, since one that stays open keeps the
 * whole server from vacuuming. The server has the same limit, a little later, for a process that was stopped.
 */
import { type BlobKey, type Call, digestOf, EngineFault, type StageId } from '@alkblobs/core/engine'
import { copyRow, type HeldSession, int8, oid, type Session } from '@alkblobs/postgres-session'
import { confirmIn, type Medium, missingIsAway } from '../medium.js'
import { stageLock } from '../names.js'

/** How much later than ourselves the server ends a transaction that is idle. */
const SERVER_SLACK_MS = 5_000

export class HeldTransaction {
  readonly #medium: Medium
  readonly #stage: StageId
  readonly #session: HeldSession
  readonly #onIdle: (error: EngineFault) => void
  /** The object's number, valid inside this transaction alone. */
  #oid = 0
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

  /**
   * Adds the bytes at their place; they are the caller's again when this resolves. Only COPY takes bytes from this driver as they are, and
   * its condition, said for each row before it is kept, is what writes: no row passes it, so the table is there for its columns alone.
   * An eighth of the processor time of hexadecimal or base64 text.
   */
  async append(bytes: Uint8Array, at: number, call: Call): Promise<void> {
    const copy = `COPY ${this.#medium.tables.entries} (loid, length, key) FROM STDIN (FORMAT binary)
      WHERE lo_put(loid, length, key) IS NULL`
    await this.#step(call, session => session.copyIn(copy, copyRow([oid(this.#oid), int8(at), bytes])))
  }

  /** Makes object and row durable. @throws EngineFault `outcome-unknown` if the answer was lost: the caller has to look. */
  async commit(key: BlobKey, length: number, call: Call): Promise<void> {
    await this.#step(call, async session => {
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
    await this.#session.rollback(call)
    await this.#session.release()
  }

  async #prepare(session: Session): Promise<void> {
    const { schema, stageIdleTimeoutMs } = this.#medium
    const [row] = await session.rows<[boolean, number]>(
      `SELECT pg_try_advisory_xact_lock($1::bigint), lo_from_bytea(0, ''),
         set_config('idle_in_transaction_session_timeout', $2, true)`,
      [stageLock(schema, this.#stage), `${stageIdleTimeoutMs + SERVER_SLACK_MS}`]
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
