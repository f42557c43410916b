/** What `get` returns: a blob shaped like the web's `Blob`, read lazily from wherever it lies. */

import { constants } from 'node:buffer'
import { isSole } from './checked-bodies.js'
import { BlobTooLargeError } from './errors.js'
import { Interrupt } from './interrupt.js'
import type { BlobKey } from './key.js'
import type { Lifecycle } from './lifecycle.js'
import { WINDOW_LENGTH } from './limits.js'
import { clampRange, type Range } from './range.js'
import { assertWhole, inlineBytes, Reading, type ReadingParts } from './reading.js'

/** What all slices of one `get` share. */
export interface BlobParts extends Omit<ReadingParts, 'range'> {
  readonly lifecycle: Lifecycle
  readonly signal: AbortSignal | undefined
}

/** Stored bytes, or a part of them. Nothing is opened until they are read; every read returns fresh buffers. */
export class StoredBlob {
  readonly #parts: BlobParts
  readonly #range: Range

  constructor(parts: BlobParts, range: Range = { start: 0, end: parts.found.entry.length }) {
    this.#parts = parts
    this.#range = range
  }

  /** The key of the whole blob, also for a slice of it. */
  get key(): BlobKey {
    return this.#parts.found.entry.key
  }

  /** Bytes in this blob or slice. */
  get size(): number {
    return this.#range.end - this.#range.start
  }

  /**
   * A part of this blob, by the arithmetic of `Blob.slice`. Parts are not verified against the key.
   * @throws TypeError for a bound that is no number, RangeError for NaN and fractions.
   */
  slice(start?: number, end?: number): StoredBlob {
    const part = clampRange(this.size, start, end)
    const offset = this.#range.start
    return new StoredBlob(this.#parts, { start: offset + part.start, end: offset + part.end })
  }

  /** All bytes at once, verified before this resolves. The array is the caller's. */
  async bytes(): Promise<Uint8Array<ArrayBuffer>> {
    if (this.size > constants.MAX_LENGTH)
      throw new BlobTooLargeError(constants.MAX_LENGTH, 'read it as a stream, or in slices')
    const inline = this.#inline()
    if (inline !== undefined) return this.#given(inline)
    const now = this.#now()
    if (now !== undefined) return now
    const { lifecycle, signal } = this.#parts
    if (signal === undefined && this.size <= WINDOW_LENGTH) return lifecycle.run(() => this.#window())
    const pass = this.#pass()
    const whole = new Uint8Array(this.size)
    let offset = 0
    for await (const chunk of pass) {
      whole.set(chunk, offset)
      offset += chunk.length
    }
    return whole
  }

  async arrayBuffer(): Promise<ArrayBuffer> {
    return (await this.bytes()).buffer
  }

  /** The bytes as UTF-8; malformed sequences become U+FFFD, as with `Blob.text`. */
  async text(): Promise<string> {
    return new TextDecoder().decode(this.#inline() ?? (await this.bytes()))
  }

  /** A byte stream that reads as it is consumed; cancelling it frees the medium at once. */
  stream(): ReadableStream<Uint8Array> {
    const pass = this.#pass()
    return new ReadableStream({
      type: 'bytes',
      async pull(controller) {
        const step = await pass.next()
        if (step.done !== true) return controller.enqueue(transferable(step.value))
        controller.close()
        controller.byobRequest?.respond(0)
      },
      async cancel() {
        await pass.return()
      }
    })
  }

  [Symbol.asyncIterator](): AsyncIterableIterator<Uint8Array> {
    return this.#pass()
  }

  /**
   * At most a window, without a pass around it: an engine gives that at once, within its deadline, so there is nothing to interrupt. Passes
   * are for what takes long, and cost several times what a warm read of 64 KiB does.
   */
  async #window(): Promise<Uint8Array<ArrayBuffer>> {
    const reading = new Reading({ ...this.#parts, range: this.#range })
    try {
      const first = await reading.next()
      if (first !== undefined && first.length === this.size && isSole(first)) return new Uint8Array(first.buffer)
      const bytes = new Uint8Array(this.size)
      let offset = 0
      for (let chunk = first; chunk !== undefined; chunk = await reading.next()) {
        bytes.set(chunk, offset)
        offset += chunk.length
      }
      return bytes
    } finally {
      await reading.close()
    }
  }

  #pass(): Pass {
    return new Pass(this.#parts, this.#range)
  }

  /** The bytes of a body that came with its record; they stay ours. */
  #inline(): Uint8Array | undefined {
    const { found, lifecycle, signal } = this.#parts
    if (found.body === undefined) return undefined
    lifecycle.assertOpen()
    signal?.throwIfAborted()
    return inlineBytes(found.body, this.#range, this.#parts)
  }

  /** The bytes of a short range of a large body, where its engine has them at once; they are the caller's. */
  #now(): Uint8Array<ArrayBuffer> | undefined {
    const { found, lifecycle, pool, signal } = this.#parts
    const { place } = found.entry
    if (place.tier === 'kv' || this.size === 0 || this.size > WINDOW_LENGTH) return undefined
    lifecycle.assertOpen()
    signal?.throwIfAborted()
    const bytes = pool.bodies.readNow(place.locator, this.#range)
    if (bytes === undefined) return undefined
    assertWhole(bytes, this.#range, this.#parts)
    return new Uint8Array(bytes.buffer)
  }

  /**
   * The same bytes in a buffer of the caller's. Who reads a whole blob mostly reads it once, so the first such read takes the buffer that
   * the catalog made, and the next one looks in the catalog again: a copy of 16 KiB is a third of what such a `get` costs.
   */
  #given(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
    const { found } = this.#parts
    if (bytes !== found.body || !isSole(bytes)) return new Uint8Array(bytes)
    found.body = undefined
    return new Uint8Array(bytes.buffer)
  }
}

/** A stream takes the buffer behind a chunk with it, so a chunk that shares its buffer goes as a copy. */
function transferable(chunk: Uint8Array): Uint8Array<ArrayBuffer> {
  return isSole(chunk) ? chunk : new Uint8Array(chunk)
}

/** One reading with everything around it: the store's life, the caller's signal, and an end however it ends. */
class Pass implements AsyncIterableIterator<Uint8Array> {
  readonly #parts: BlobParts
  readonly #reading: Reading
  #interrupt: Interrupt | undefined
  #end: (() => void) | undefined
  #failure: { readonly cause: unknown } | undefined
  #turn: Promise<unknown> = Promise.resolve()
  #over = false

  constructor(parts: BlobParts, range: Range) {
    this.#parts = parts
    this.#reading = new Reading({ ...parts, range })
  }

  /** Steps queue as those of a generator do: each gets its own chunk, however many are asked for at once. */
  next(): Promise<IteratorResult<Uint8Array, undefined>> {
    return this.#inTurn(() => this.#next())
  }

  return(): Promise<IteratorResult<Uint8Array, undefined>> {
    return this.#inTurn(async () => {
      await this.#finish()
      return { done: true, value: undefined }
    })
  }

  [Symbol.asyncIterator](): this {
    return this
  }

  #inTurn<T>(step: () => Promise<T>): Promise<T> {
    const turn = this.#turn.then(step)
    this.#turn = turn.catch(reportedByNext)
    return turn
  }

  async #next(): Promise<IteratorResult<Uint8Array, undefined>> {
    if (this.#failure !== undefined) throw this.#failure.cause
    if (this.#over) return { done: true, value: undefined }
    try {
      const interrupt = this.#begin()
      const chunk = await interrupt.wait(this.#reading.next())
      if (chunk !== undefined) return { done: false, value: chunk }
    } catch (error) {
      this.#failure = { cause: error }
      await this.#finish()
      throw error
    }
    await this.#finish()
    return { done: true, value: undefined }
  }

  /** At the first step: from here on the store waits for this pass when it closes, or ends it. */
  #begin(): Interrupt {
    if (this.#interrupt !== undefined) return this.#interrupt
    const { lifecycle, signal } = this.#parts
    lifecycle.assertOpen()
    signal?.throwIfAborted()
    this.#end = lifecycle.begin()
    const interrupt = new Interrupt(signal, lifecycle.closing)
    interrupt.onFire(reason => {
      this.#failure ??= { cause: reason }
      this.#finish().catch(reportedByNext)
    })
    this.#interrupt = interrupt
    return interrupt
  }

  async #finish(): Promise<void> {
    if (this.#over) return
    this.#over = true
    this.#interrupt?.dispose()
    try {
      await this.#reading.close()
    } finally {
      this.#end?.()
    }
  }
}

/** Each step rejects by itself; this keeps the shared promise, or a close nobody waits for, from counting as unhandled. */
function reportedByNext(): void {}
