/** What one store holds of one key: how many pins, by which generations of its row. */
import type { BlobKey } from './key.js'
import type { PinKeeper, PinState } from './pin.js'

/** A moment on both clocks: a suspended machine stops the one, an administrator moves the other. */
export interface Instant {
  readonly wallMs: number
  readonly monotonicMs: number
}

/** How rows live, and who wants to know of a key that nobody counts on any more. */
export interface HeldParts {
  readonly pinTtlMs: number
  /** Whether rows expire at all; in the memory of one process they do not. */
  readonly expires: boolean
  readonly onUnused: (held: Held) => void
}

/** All pins of one key. */
export class Held implements PinKeeper {
  readonly key: BlobKey
  readonly states = new Set<PinState>()
  /** Highest generation minted; a release names it. */
  minted = 0
  /** Highest generation that a transaction confirmed; a renewal names it. */
  confirmed = 0
  /** Puts and pins whose transaction is under way. */
  pending = 0
  /** When the last transaction that wrote the row was begun. */
  renewed: Instant
  readonly #parts: HeldParts

  constructor(key: BlobKey, renewed: Instant, parts: HeldParts) {
    this.key = key
    this.renewed = renewed
    this.#parts = parts
  }

  get isCurrent(): boolean {
    const { expires, pinTtlMs } = this.#parts
    return !expires || elapsedMs(this.renewed) < pinTtlMs
  }

  end(pin: PinState): void {
    if (this.states.delete(pin)) this.endIfUnused()
  }

  endIfUnused(): void {
    if (this.pending === 0 && this.states.size === 0) this.#parts.onUnused(this)
  }

  /** Tells the holders of all pins that these are lost. */
  loseAll(): void {
    const lost = [...this.states]
    this.states.clear()
    for (const state of lost) state.lose()
  }
}

export function instant(): Instant {
  return { wallMs: Date.now(), monotonicMs: performance.now() }
}

/** By the clock that says more. */
export function elapsedMs(since: Instant): number {
  return Math.max(Date.now() - since.wallMs, performance.now() - since.monotonicMs)
}
