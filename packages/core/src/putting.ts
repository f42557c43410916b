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
import type { Published, Publisher } from './publish.js'
import { assertAcceptable, putLarge, putSmall, putStream } from './put.js'
import {
  assertUnpinnedAllowed,
  type PutOptions,
  type PutReceipt,
  type PutRequest,
  putRequestOf
} from './put-options.js'
import { type PutParts, PutSession } from './put-session.js'
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

type Stream = Extract<Content, { kind: 'stream' }>

/** What tells a put of its own from one inside a transaction of the application's. */
interface Way<T> {
  readonly parts: PutParts
  readonly options: PutOptions | undefined
  /** What must be there before the first byte is stored; `undefined` where there is nothing to wait for. */
  readonly ready: (request: PutRequest) => Promise<void> | undefined
  readonly answer: (trace: OperationTrace, stored: Published) => T
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
    return this.#take(given, { parts: this.#parts, options, ready: this.#ready, answer: this.#stored })
  }

  /** Puts into a transaction of the application's. @throws InvalidArgumentError for what is none, or where the catalog takes part in none. */
  async joining(transaction: unknown): Promise<JoinedStore> {
    const { pool, publisher } = this.#parts
    const join = pool.catalog.joining
    if (join === undefined) throw new InvalidArgumentError('transaction', 'of a store whose kv tier is on PostgreSQL')
    await pool.establish()
    const parts = { ...this.#parts, publisher: new JoinedPublisher(await join(transaction), pool, publisher) }
    // No pin and no window are needed: before the commit nothing is there, and with it comes what the application refers to it by.
    const ready = () => pool.establish()
    return new JoinedStore((given, options) => this.#take(given, { parts, options, ready, answer: this.#noted }))
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
      open: (this.#ready(request) ?? Promise.resolve()).then(() => sink),
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
  async #take<T>(given: BlobContent, way: Way<T>): Promise<T> {
    const content = contentOf(given)
    const { lifecycle, pool } = this.#parts
    try {
      lifecycle.enter()
      try {
        return await traced('put', pool.durability, trace => this.#put(content, way, trace))
      } finally {
        lifecycle.leave()
      }
    } catch (error) {
      if (content.kind === 'stream') await content.pull.cancel(error)
      throw error
    }
  }

  async #put<T>(content: Content, way: Way<T>, trace: OperationTrace): Promise<T> {
    const request = this.#request(way.options)
    if (content.kind === 'stream') return way.answer(trace, await this.#putStream(content, way, request))
    const { bytes, length } = content
    assertAcceptable(this.#parts, request, length)
    // Small bytes are copied in this very turn, so that what follows may wait.
    const copy = length > this.#parts.dispatch.threshold ? undefined : copyOf(bytes)
    const waiting = way.ready(request)
    if (waiting !== undefined) await waiting
    if (copy === undefined) return way.answer(trace, await putLarge(way.parts, { ...request, length }, content))
    const stored = await putSmall(way.parts, request, copy.bytes)
    // Only now does nobody read them any more (ENG-PUBLISH-8): an engine whose call has failed may be at it yet.
    copy.giveBack()
    return way.answer(trace, stored)
  }

  async #putStream<T>(content: Stream, way: Way<T>, request: PutRequest): Promise<Published> {
    const endStream = this.#beginStream()
    try {
      await way.ready(request)
      const length = request.length ?? content.length
      return await putStream(way.parts, { ...request, length }, content.pull, this.#parts.lifecycle.closing)
    } finally {
      endStream()
    }
  }

  #request(options: PutOptions | undefined): PutRequest {
    const { config } = this.#parts
    return putRequestOf(options, { algorithm: config.algorithm, maxLength: config.maxLength })
  }

  readonly #ready = (request: PutRequest): Promise<void> | undefined => {
    const waiting = this.#parts.pool.establish()
    return request.pin ? waiting : this.#unpinned(waiting)
  }

  async #unpinned(waiting: Promise<void> | undefined): Promise<void> {
    await waiting
    const { pool } = this.#parts
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

  readonly #noted = (trace: OperationTrace, stored: Published): Published => {
    trace.key = stored.key
    trace.length = stored.length
    trace.tier = stored.entry.place.tier
    this.#parts.onPut()
    return stored
  }

  readonly #stored = (trace: OperationTrace, stored: Published): PutReceipt => {
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
