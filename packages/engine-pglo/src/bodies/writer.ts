/**
 * One body being written: `create`, `write`, `seal`, `discard`.
 *
 * Bytes are gathered into windows. A body of at most one window, which is most of them, is one statement at its seal: object and
 * row appear together, and nothing was held before. A longer one takes a session of its own when its second window begins, and
 * keeps a transaction open on it until the seal (`held-transaction.ts`). One window is on its way while the next one fills.
 */
import {
  type BlobKey,
  type BodyWriter,
  type Call,
  digestOf,
  EngineFault,
  type Locator,
  type StageId,
  WINDOW_LENGTH
} from '@alkblobs/core/engine'
import { ServerError } from '@alkblobs/postgres-session'
import { classify } from '../classify.js'
import { ask, checkCall, type Medium, tell } from '../medium.js'
import { locatorOf, parseStageId, stageLock } from '../names.js'
import { dropStages } from './drop.js'
import { HeldTransaction } from './held-transaction.js'

export async function createBody(medium: Medium, id: StageId, lengthHint: number | undefined, call: Call) {
  const stage = parseStageId(id)
  const patienceMs = call.deadlineMs - performance.now()
  const { claim, entries } = medium.tables
  const [row] = await ask<[boolean]>(
    medium,
    call,
    `SELECT pool_id, EXISTS (SELECT FROM ${entries} WHERE stage = $1::uuid) FROM ${claim}`,
    [stage]
  )
  // A stage is used once: what it sealed may have an entry (BODY-CREATE-1). The row's key holds against those who come at once.
  if (row?.[0] !== false) throw usedBefore()
  return new ObjectWriter(medium, stage, lengthHint, patienceMs)
}

class ObjectWriter implements BodyWriter {
  readonly #medium: Medium
  readonly #stage: StageId
  /**
   * The methods of a writer come without a deadline: each has as long as the call that made it had, and begins nothing after that.
   * A window is given the same from when it is sent, since the producer is asked for the next one meanwhile.
   */
  readonly #patienceMs: number
  readonly #bufferLength: number
  #window: Buffer | undefined
  /** The window that is on its way, filled again when it has arrived. */
  #spare: Buffer | undefined
  #filled = 0
  /** Bytes that are on their way or written, not those in the window. */
  #sent = 0
  #transaction: HeldTransaction | undefined
  #failure: { readonly error: unknown } | undefined
  #sending: Promise<void> = Promise.resolve()
  /** A commit was begun: what it made must be removed by a discard, for its answer may be lost or come too late. */
  #mayBeThere = false

  constructor(medium: Medium, stage: StageId, lengthHint = WINDOW_LENGTH, patienceMs: number) {
    this.#medium = medium
    this.#stage = stage
    this.#patienceMs = patienceMs
    this.#bufferLength = Math.min(Math.max(lengthHint, 4_096), WINDOW_LENGTH)
  }

  async write(chunk: Uint8Array): Promise<void> {
    try {
      await this.#add(chunk, this.#call())
    } catch (error) {
      // Nobody knows how much of the chunk was taken.
      this.#fail(error)
      throw error
    }
  }

  async seal(key: BlobKey): Promise<Locator> {
    const call = this.#call()
    try {
      this.#check()
      if (this.#sent === 0) await this.#sealAtOnce(key, call)
      else await this.#sealTransaction(key, call)
      this.#fail(new EngineFault('unknown', 'the body is sealed'))
      return locatorOf(this.#stage)
    } catch (error) {
      this.#fail(error)
      // What the server refused is not there; a discard that removed what lies under the stage would remove another's.
      this.#mayBeThere &&= ['transient', 'outcome-unknown'].includes(classify(error))
      throw error
    } finally {
      await this.#letGo(call)
    }
  }

  async discard(): Promise<void> {
    const call = this.#call()
    this.#fail(new EngineFault('unknown', 'the body was discarded'))
    await this.#letGo(call)
    if (!this.#mayBeThere) return
    const failures = await dropStages(this.#medium, [this.#stage], call)
    if (failures.size > 0) throw failures.get(this.#stage)
    this.#mayBeThere = false
  }

  async #add(chunk: Uint8Array, call: Call): Promise<void> {
    for (let at = 0; at < chunk.byteLength; ) {
      this.#check()
      if (this.#filled === WINDOW_LENGTH) await this.#flush(call)
      const window = this.#room(chunk.byteLength - at)
      const taken = Math.min(chunk.byteLength - at, window.length - this.#filled)
      window.set(chunk.subarray(at, at + taken), this.#filled)
      this.#filled += taken
      at += taken
    }
    this.#check()
  }

  async #sealAtOnce(key: BlobKey, call: Call): Promise<void> {
    const medium = this.#medium
    const text = this.#window?.toString('base64', 0, this.#filled) ?? ''
    this.#mayBeThere = true
    const [row] = await tell<[boolean]>(medium, call, sealStatement(medium), [
      this.#stage,
      text,
      digestOf(key).toString('hex'),
      this.#filled,
      stageLock(medium.schema, this.#stage),
      medium.poolId as string,
      medium.holder?.fence ?? null
    ]).catch(duplicateIsUsed)
    if (row?.[0] === true) return
    await medium.holder?.ensure(call)
    throw new EngineFault('conflict', 'the stage is being written or dropped by somebody else')
  }

  async #sealTransaction(key: BlobKey, call: Call): Promise<void> {
    if (this.#filled > 0) await this.#flush(call)
    await this.#sending
    this.#check()
    this.#mayBeThere = true
    await this.#transaction?.commit(key, this.#sent, call).catch(duplicateIsUsed)
  }

  /** Sends the window on its way, as soon as the one before has arrived. */
  async #flush(call: Call): Promise<void> {
    await this.#sending
    this.#check()
    checkCall(call)
    const transaction = this.#transaction ?? (await this.#begin(call))
    const full = this.#window as Buffer
    const bytes = full.subarray(0, this.#filled)
    const at = this.#sent
    this.#sent += this.#filled
    this.#filled = 0
    this.#window = this.#spare
    this.#spare = full
    this.#sending = transaction.append(bytes, at, this.#call()).catch(error => this.#fail(error))
  }

  async #begin(call: Call): Promise<HeldTransaction> {
    try {
      const onIdle = (error: EngineFault) => {
        this.#fail(error)
        void this.#letGo(this.#call())
      }
      this.#transaction = await HeldTransaction.begin(this.#medium, this.#stage, call, onIdle)
      return this.#transaction
    } catch (error) {
      this.#fail(error)
      await this.#letGo(call)
      throw error
    }
  }

  /** Ends the transaction, if it has not been committed; idempotent. */
  async #letGo(call: Call): Promise<void> {
    await this.#sending
    const transaction = this.#transaction
    this.#transaction = undefined
    await transaction?.abandon(call)
    this.#window = undefined
    this.#spare = undefined
  }

  /** The window with room for at least one more byte. It grows once: most bodies without a hint are short. */
  #room(wanted: number): Buffer {
    const window = this.#window
    if (window !== undefined && this.#filled < window.length) return window
    const length = window === undefined ? Math.max(this.#bufferLength, wanted) : WINDOW_LENGTH
    const larger = Buffer.allocUnsafeSlow(Math.min(length, WINDOW_LENGTH))
    if (window !== undefined) larger.set(window.subarray(0, this.#filled))
    this.#window = larger
    return larger
  }

  #call(): Call {
    return { deadlineMs: performance.now() + this.#patienceMs }
  }

  #fail(error: unknown): void {
    this.#failure ??= { error }
  }

  #check(): void {
    if (this.#failure !== undefined) throw this.#failure.error
  }
}

/** Object and row in one statement, unless the claim is no longer this store's or somebody else is busy with the stage. */
function sealStatement({ holder, tables }: Medium): string {
  return `WITH mine AS MATERIALIZED (
      SELECT pool_id, fence FROM ${tables.claim}${holder === undefined ? '' : ' FOR SHARE'}
    ), made AS (
      INSERT INTO ${tables.entries} (stage, loid, key, length)
      SELECT $1::uuid, lo_from_bytea(0, decode($2::text, 'base64')), decode($3::text, 'hex'), $4::bigint FROM mine
      WHERE pool_id = $6::text AND ($7::text IS NULL OR fence = $7::text::bigint)
        AND pg_try_advisory_xact_lock($5::text::bigint)
      RETURNING 1
    )
    SELECT pool_id, EXISTS (SELECT FROM made) FROM mine`
}

function usedBefore(cause?: unknown): EngineFault {
  return new EngineFault('unknown', 'the stage has a sealed body already', cause)
}

function duplicateIsUsed(error: unknown): never {
  const isDuplicate = error instanceof ServerError && error.code === '23505' && error.constraint === 'lo_entries_pkey'
  throw isDuplicate ? usedBefore(error) : error
}
