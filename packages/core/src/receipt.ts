/** Receipts: what a put returns, and what becomes of one that its holder forgot. */
import type { BlobKey } from './key.js'
import { Pin, type PinState } from './pin.js'
import type { PutReceipt } from './put-options.js'

class Receipt implements PutReceipt {
  readonly key: BlobKey
  readonly length: number
  readonly created: boolean
  readonly pin: Pin | undefined

  constructor(key: BlobKey, length: number, created: boolean, pin: Pin | undefined) {
    this.key = key
    this.length = length
    this.created = created
    this.pin = pin
  }

  release(): Promise<void> {
    return this.pin === undefined ? Promise.resolve() : this.pin.release()
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.release()
  }
}

export class Receipts {
  readonly #forgotten: FinalizationRegistry<PinState>

  /** `onForgotten` is told of a pin whose holder is gone without having released it. */
  constructor(onForgotten: (state: PinState) => void) {
    this.#forgotten = new FinalizationRegistry(state => {
      if (!state.released) onForgotten(state)
    })
  }

  receipt(key: BlobKey, length: number, created: boolean, state: PinState | undefined): PutReceipt {
    return new Receipt(key, length, created, state && this.pin(state))
  }

  pin(state: PinState): Pin {
    const pin = new Pin(state)
    this.#forgotten.register(pin, state)
    return pin
  }
}
