/** The push form of a put: chunks are written as they come up, and kept only if the writer is committed. */
import { setMaxListeners } from 'node:events'
import { types } from 'node:util'
import { chunkOf, partOf } from './content.js'
import { InvalidArgumentError } from './errors.js'
import type { PutReceipt } from './put-options.js'

/** What a writer needs of its store. */
interface WriterParts {
  /** Ready to take bytes; fails if the pool cannot be written. */
  readonly open: Promise<PutSink>
  readonly signals: readonly (AbortSignal | undefined)[]
  /** Told once, when the writer has committed, failed or been discarded. */
  readonly onEnd: () => void
}

interface PutSink {
  write(chunk: Uint8Array): Promise<void>
  commit(): Promise<PutReceipt>
  discard(): Promise<void>
}

/** A put by hand, as the store knows it: what signals and the closing store hold on to instead of the holder's own object. */
export class WriterState {
  readonly #open: Promise<PutSink>
  readonly #onEnd: () => void
  readonly #onAbort: () => void
  readonly #signals: readonly AbortSignal[]
  #queue: Promise<void> = Promise.resolve()
  #failure: { readonly cause: unknown } | undefined
  #receipt: Promise<PutReceipt> | undefined
  #ended: Promise<void> | undefined

  constructor({ open, signals, onEnd }: WriterParts) {
    this.#open = open
    this.#open.catch(reportedByCalls)
    this.#onEnd = onEnd
    this.#signals = signals.filter(signal => signal !== undefined)
    this.#onAbort = () => void this.#fail(this.#signals.find(signal => signal.aborted)?.reason)
    if (this.#signals.length > 0) setMaxListeners(0, ...this.#signals)
    for (const signal of this.#signals) signal.addEventListener('abort', this.#onAbort, { once: true })
  }

  write(chunk: Uint8Array): Promise<void> {
    const length = lengthOf(chunk)
    return this.#inOrder(async sink => {
      const bytes = chunkOf(chunk)
      if (length > 0) await sink.write(partOf(bytes, 0, length))
    })
  }

  commit(): Promise<PutReceipt> {
    this.#receipt ??= this.#commit()
    return this.#receipt
  }

  async discard(): Promise<void> {
    if (this.#receipt !== undefined) return
    await this.#fail(new InvalidArgumentError('writer', 'open: this one was discarded'))
  }

  async #commit(): Promise<PutReceipt> {
    let receipt: PutReceipt | undefined
    await this.#inOrder(async sink => {
      receipt = await sink.commit()
    })
    this.#end()
    return receipt as PutReceipt
  }

  /** Runs one step after those before it; the first failure ends the writer. */
  #inOrder(step: (sink: PutSink) => Promise<void>): Promise<void> {
    const turn = this.#queue.then(async () => {
      this.#throwIfEnded()
      try {
        const sink = await this.#open
        this.#throwIfEnded()
        await step(sink)
      } catch (error) {
        this.#failure ??= { cause: error }
        await this.#takeBack()
        throw this.#failure.cause
      }
    })
    this.#queue = turn.catch(reportedByCalls)
    return turn
  }

  #throwIfEnded(): void {
    if (this.#failure !== undefined) throw this.#failure.cause
    if (this.#ended !== undefined) throw new InvalidArgumentError('writer', 'open: this one was committed')
  }

  /** Ends the writer from outside a step: whatever step is under way completes first, and nothing follows it. */
  async #fail(cause: unknown): Promise<void> {
    if (this.#ended !== undefined) return
    this.#failure ??= { cause }
    await this.#queue
    await this.#takeBack()
  }

  #takeBack(): Promise<void> {
    this.#ended ??= this.#open.then(
      sink => sink.discard(),
      () => undefined
    )
    return this.#ended.finally(() => this.#end())
  }

  #end(): void {
    this.#ended ??= Promise.resolve()
    for (const signal of this.#signals) signal.removeEventListener('abort', this.#onAbort)
    this.#onEnd()
  }
}

/**
 * Takes chunks and makes one blob of them. `await using` discards what was not committed. A failure ends the writer: it
 * has then taken everything back, and every later call rejects with that failure. A writer that became unreachable is
 * discarded.
 */
export class BlobWriter {
  readonly #state: WriterState
  #writable: WritableStream<Uint8Array> | undefined

  constructor(state: WriterState) {
    this.#state = state
  }

  /** Takes a chunk; it is the caller's again when this resolves. Await it: that is the backpressure. */
  write(chunk: Uint8Array): Promise<void> {
    return this.#state.write(chunk)
  }

  /** Makes the blob. Called again it answers the same receipt. */
  commit(): Promise<PutReceipt> {
    return this.#state.commit()
  }

  /** Takes everything back; idempotent, and without effect after a commit. */
  discard(): Promise<void> {
    return this.#state.discard()
  }

  /** The writer as a WritableStream: closing it commits, aborting it discards. The receipt is then `commit()`'s answer. */
  get writable(): WritableStream<Uint8Array> {
    this.#writable ??= new WritableStream<Uint8Array>({
      write: chunk => this.write(chunk),
      close: async () => void (await this.commit()),
      abort: () => this.discard()
    })
    return this.#writable
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.discard()
  }
}

/** The length at the time of the call, whenever the chunk's turn comes; what is no chunk is refused at its turn. */
function lengthOf(chunk: Uint8Array): number {
  return types.isUint8Array(chunk) ? chunk.length : 0
}

/** Each call rejects with the failure itself; this keeps the shared promise from counting as unhandled. */
function reportedByCalls(): void {}
