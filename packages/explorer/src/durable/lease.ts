/** The right to sweep: a lock that ends with its instance, and a number that fences off a holder who lost it unnoticed. */
import { EngineFault, type Lease } from '@alkblobs/core/engine'
import type { DurableMedium } from './medium.js'

export class HeldLease implements Lease {
  readonly #medium: DurableMedium
  readonly #number: number
  readonly #lost = new AbortController()
  #isReleased = false

  constructor(medium: DurableMedium) {
    this.#medium = medium
    this.#number = ++medium.leases
    medium.lock = this.#number
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  get isInForce(): boolean {
    return !this.#isReleased && this.#medium.lock === this.#number && this.#medium.leases === this.#number
  }

  /** For every transaction of a sweep. @throws EngineFault `conflict`, after `lost` has fired, unless it is held beyond doubt. */
  check(): void {
    if (this.isInForce && !this.lost.aborted) return
    const error = new EngineFault('conflict', 'lease lost')
    if (!this.#isReleased) this.#lost.abort(error)
    throw error
  }

  async release(): Promise<void> {
    this.#isReleased = true
    if (this.#medium.lock === this.#number) this.#medium.lock = undefined
  }
}
