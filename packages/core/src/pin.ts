/** A pin as its holder sees it, and the bookkeeping behind it that must not keep the holder's object alive. */
import type { BlobKey } from './key.js'

/** Who keeps the pins of one key. */
export interface PinKeeper {
  /** Whether the last renewal is recent enough for the row to stand. */
  readonly isCurrent: boolean
  /** The pin was released. */
  end(pin: PinState): void
}

/** One pin, as the store counts it. */
export class PinState {
  readonly key: BlobKey
  readonly length: number
  readonly #keeper: PinKeeper
  /** Made for who asks: most pins are released before anybody does. */
  #controller: AbortController | undefined
  #lost: Error | undefined
  #released = false

  constructor(key: BlobKey, length: number, keeper: PinKeeper) {
    this.key = key
    this.length = length
    this.#keeper = keeper
  }

  get held(): boolean {
    return !this.#released && this.#lost === undefined && this.#keeper.isCurrent
  }

  get released(): boolean {
    return this.#released
  }

  /** Fires when the protection was lost, never on release. */
  get signal(): AbortSignal {
    this.#controller ??= new AbortController()
    if (this.#lost !== undefined && !this.#controller.signal.aborted) this.#controller.abort(this.#lost)
    return this.#controller.signal
  }

  /** Idempotent. */
  release(): void {
    if (this.#released) return
    this.#released = true
    this.#keeper.end(this)
  }

  lose(): void {
    this.#lost = new Error(`the pin of ${this.key} was lost: it could not be renewed in time; put the content again`)
    this.#controller?.abort(this.#lost)
  }
}

/**
 * Protection of one key. Hold it while you write a reference to the key somewhere a liveness source will find it, then
 * release it. It is renewed by itself, dies with the process, and can be lost: then `signal` fires and `held` is false.
 */
export class Pin {
  readonly #state: PinState

  constructor(state: PinState) {
    this.#state = state
  }

  get key(): BlobKey {
    return this.#state.key
  }

  /** Length of the blob in bytes. */
  get length(): number {
    return this.#state.length
  }

  /**
   * Whether the protection stands: neither released nor lost, and renewed within its TTL. After the process was stopped for
   * longer than that it is false until a renewal has found the row, and in a fleet for good; look at it once your reference is
   * durable.
   */
  get held(): boolean {
    return this.#state.held
  }

  /** Fires if the protection is lost before it was released. */
  get signal(): AbortSignal {
    return this.#state.signal
  }

  /** Ends the protection; idempotent, also after the store was closed. The row ends within 50 ms. */
  release(): Promise<void> {
    this.#state.release()
    return Promise.resolve()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release()
  }
}
