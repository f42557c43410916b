/** Everything that ends in a pin: `put`, `writer` and `pin`, with the bounds around them. */
import { type OperationTrace, traced } from './channels.js'
import type { StoreConfig } from './config.js'
import { type BlobContent, type Content, contentOf } from './content.js'
import type { PoolRecord } from './engine.js'
import { InvalidArgumentError, PutError } from './errors.js'
import { JoinedPublisher, JoinedStore } from './joined.js'
import type { BlobKey } from './key.js'
import type { Lifecycle } from './lifecycle.js'
import type { Pin, PinState } from './pin.js'
import type { Publisher } from './publish.js'
import { assertAcceptable, putContent } from './put.js'
import {
  assertUnpinnedAllowed,
  type PutOptions,
  type PutReceipt,
  type PutRequest,
  putRequestOf
} from './put-options.js'
import { type PutParts, PutSession, type Stored } from './put-session.js'
import { Receipts } from './receipt.js'
import { copyOf } from './slab.js'
import { BlobWriter, WriterState } from './writer.js'

interface PuttingParts extends PutParts {
  readonly config: StoreConfig
  readonly publisher: Publisher
  readonly lifecycle: Lifecycle
  /** Told after each put that made a stage or an entry, so that maintenance comes by some time. */
  readonly onPut: () => void
}

export class Putting {
  readonly #parts: PuttingParts
  readonly #receipts: Receipts
  readonly #forgottenWriters = new FinalizationRegistry<WriterState>(state => {
    // What cannot be taken back now is reclaimed when its stage has expired.
    state.discard().catch(() => undefined)
  })
  #streams = 0

  constructor(parts: PuttingParts) {
    this.#parts = parts
    this.#receipts = new Receipts(state => this.#forgotten(state))
  }

  put(given: BlobContent, options: PutOptions | undefined): Promise<PutReceipt> {
    return this.#take(given, async (content, trace) => {
      const request = this.#request(options)
      return this.#stored(trace, await this.#put(this.#parts, content, request, () => this.#ready(request)))
    })
  }

  /** Puts into a transaction of the application's. @throws InvalidArgumentError for what is none, or where the catalog takes part in none. */
  async joining(transaction: unknown): Promise<JoinedStore> {
    const { pool, publisher } = this.#parts
    const join = pool.catalog.joining
    if (join === undefined) throw new InvalidArgumentError('transaction', 'of a store whose kv tier is on PostgreSQL')
    await pool.establish()
    const parts = { ...this.#parts, publisher: new JoinedPublisher(await join(transaction), pool, publisher) }
    return new JoinedStore((given, options) =>
      this.#take(given, async (content, trace) => {
        const request = this.#request(options)
        // No pin and no window are needed: before the commit nothing is there, and with it comes what the application refers to it by.
        return this.#noted(trace, await this.#put(parts, content, request, () => pool.establish()))
      })
    )
  }

  writer(options: PutOptions | undefined): BlobWriter {
    const request = this.#request(options)
    const { lifecycle, pool } = this.#parts
    lifecycle.assertOpen()
    const session = new PutSession(this.#parts, request)
    session.begin()
    const ends = [this.#beginStream(), lifecycle.begin()]
    const sink = {
      write: (chunk: Uint8Array) => session.write(chunk),
      commit: () => traced('put', pool.durability, async trace => this.#stored(trace, await session.commit())),
      discard: () => session.discard()
    }
    const state = new WriterState({
      open: this.#ready(request).then(() => sink),
      signals: [request.signal, lifecycle.closing],
      onEnd: () => {
        for (const end of ends.splice(0)) end()
      }
    })
    const writer = new BlobWriter(state)
    this.#forgottenWriters.register(writer, state)
    return writer
  }

  async pin(key: BlobKey): Promise<Pin | undefined> {
    if (!(await this.#parts.pool.exists())) return undefined
    await this.#parts.pool.establish()
    const state = await this.#parts.publisher.pin(key)
    return state && this.#receipts.pin(state)
  }

  /** Whatever fails, from the first look at the options to the commit, the producer is told. */
  async #take<T>(given: BlobContent, put: (content: Content, trace: OperationTrace) => Promise<T>): Promise<T> {
    const content = contentOf(given)
    const { lifecycle, pool } = this.#parts
    try {
      return await lifecycle.run(() => traced('put', pool.durability, trace => put(content, trace)))
    } catch (error) {
      if (content.kind === 'stream') await content.pull.cancel(error)
      throw error
    }
  }

  async #put(parts: PutParts, content: Content, request: PutRequest, ready: () => Promise<void>): Promise<Stored> {
    const own = this.#owned(content, request)
    const endStream = own.kind === 'stream' ? this.#beginStream() : undefined
    try {
      await ready()
      const length = own.kind === 'stream' ? (request.length ?? own.length) : own.length
      return await putContent(parts, { ...request, length }, own, this.#parts.lifecycle.closing)
    } finally {
      endStream?.()
    }
  }

  /** Refuses bytes that cannot be stored; copies small ones in this very turn, so that what follows may wait. */
  #owned(content: Content, request: PutRequest): Content {
    if (content.kind === 'stream') return content
    const { bytes, length } = content
    assertAcceptable(this.#parts, request, length)
    return length > this.#parts.dispatch.threshold ? content : { kind: 'bytes', bytes: copyOf(bytes), length }
  }

  #request(options: PutOptions | undefined): PutRequest {
    const { config } = this.#parts
    return putRequestOf(options, { algorithm: config.algorithm, maxLength: config.maxLength })
  }

  async #ready(request: PutRequest): Promise<void> {
    const { pool } = this.#parts
    await pool.establish()
    if (request.pin) return
    const record = (await pool.record()) as PoolRecord
    assertUnpinnedAllowed(pool.catalog.form, record.windowDelayMs)
  }

  /** Takes one of the places for content whose end is in somebody else's hands. */
  #beginStream(): () => void {
    const { putsMax } = this.#parts.config
    if (this.#streams >= putsMax) {
      throw new PutError(
        'ERR_BLOB_TOO_MANY_PUTS',
        `${putsMax} streams are being put already; wait for some, or raise putsMax`
      )
    }
    this.#streams++
    let ended = false
    return () => {
      if (!ended) this.#streams--
      ended = true
    }
  }

  #noted(trace: OperationTrace, stored: Stored): Stored {
    const { key, length, entry } = stored
    Object.assign(trace, { key, length, tier: entry.place.tier })
    this.#parts.onPut()
    return stored
  }

  #stored(trace: OperationTrace, stored: Stored): PutReceipt {
    const { key, length, outcome, pin } = this.#noted(trace, stored)
    return this.#receipts.receipt(key, length, outcome !== 'existed', pin)
  }

  /**
   * A holder is gone without having released. On a durable pool the key then counts as just put, so that a full window
   * delay protects it; a pool in memory has no window, so the pin stays until the store closes.
   */
  #forgotten(state: PinState): void {
    const { pool, publisher, lifecycle } = this.#parts
    if (pool.catalog.form === 'inline') {
      warnOfForgottenPins()
      return
    }
    const lapse = async () => {
      const fresh = await publisher.pin(state.key)
      fresh?.release()
      state.release()
    }
    lifecycle.run(lapse).catch(stillPinned)
  }
}

/** The catalog could not be reached, so the pin stays and is renewed, which is the safe direction; or the store is closing. */
function stillPinned(): void {}

let hasWarned = false

/** Once for each process: who forgets one receipt forgets many. */
function warnOfForgottenPins(): void {
  if (hasWarned) return
  hasWarned = true
  const message =
    'a put receipt was garbage collected without being released; its key stays pinned until the store closes'
  process.emitWarning(message, { code: 'ALKBLOBS_UNRELEASED_PIN' })
}
