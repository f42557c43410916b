/**
 * Bounds how many descriptors bodies hold open, fairly and without deadlock.
 *
 * The danger: a writer holds a descriptor while it waits for its producer, and the producer may be a reader of this very
 * store that waits for a descriptor. Hence
 *   1. a reader holds its descriptor only while it reads. In between, while its consumer works, it LENDS the descriptor:
 *      whoever needs one closes it, and the reader opens the file again at its next pull;
 *   2. writers may hold three quarters; the rest is for readers.
 * So a waiting reader waits for reads of the disk alone, never for user code, and every put that is fed by a get goes on.
 * Only a put whose producer waits for another put can still find every place for writers taken by its like: it fails as
 * `exhausted` at its deadline.
 *
 * Not counted: the one folder or claim at a time that a call opens between two steps, and files that are read and closed in one
 * go because there is no room to keep them (`bodies/kept.ts`).
 */
import { EngineFault } from '@alkblobs/core/engine'

export type Use = 'read' | 'write'

export interface Patience {
  readonly signal?: AbortSignal | undefined
  /** How long to wait, in milliseconds. */
  readonly waitMs: number
}

interface Waiter {
  readonly use: Use
  readonly grant: () => void
}

/** Longest timer that Node.js keeps; a longer one fires at once. */
const TIMER_MAX_MS = 2 ** 31 - 1

export class Descriptors {
  readonly #max: number
  readonly #writersMax: number
  #held = 0
  #writers = 0
  #evicting = 0
  readonly #waiting = new Set<Waiter>()
  /** Lent descriptors, longest lent first, each with what closes it. */
  readonly #lent = new Map<object, () => Promise<void>>()

  constructor(max: number) {
    this.#max = max
    this.#writersMax = max - Math.max(1, Math.floor(max / 4))
  }

  /** Waits, first come first served, for the right to open one. @throws EngineFault `exhausted` when patience ends. */
  acquire(use: Use, { signal, waitMs }: Patience): Promise<void> {
    return new Promise((resolve, reject) => {
      const settle = (then: () => void) => {
        this.#waiting.delete(waiter)
        clearTimeout(timer)
        signal?.removeEventListener('abort', abort)
        then()
      }
      const abort = () => settle(() => reject(signal?.reason))
      const expire = () => settle(() => reject(new EngineFault('exhausted', `all ${this.#max} descriptors are in use`)))
      const waiter: Waiter = { use, grant: () => settle(resolve) }
      const timer = Number.isFinite(waitMs)
        ? setTimeout(expire, Math.min(Math.max(waitMs, 0), TIMER_MAX_MS))
        : undefined
      if (signal?.aborted) return abort()
      signal?.addEventListener('abort', abort)
      this.#waiting.add(waiter)
      this.#serve()
    })
  }

  /** Takes the right to open one if there is one to spare: nobody waits for it, and nothing lent has to be closed. */
  tryAcquire(use: Use): boolean {
    if (this.#waiting.size > 0 || this.#held >= this.#max) return false
    if (use === 'write' && this.#writers >= this.#writersMax) return false
    this.#take(use)
    return true
  }

  release(use: Use): void {
    this.#held -= 1
    if (use === 'write') this.#writers -= 1
    this.#serve()
  }

  /** Offers an open descriptor to whoever needs one: `close` is called then, at most once. */
  lend(holder: object, close: () => Promise<void>): void {
    this.#lent.set(holder, close)
    this.#serve()
  }

  /** Takes back what was lent; false if somebody needed it in the meantime. */
  reclaim(holder: object): boolean {
    return this.#lent.delete(holder)
  }

  /** Closes everything that is lent: readers that nobody pulls or ends any more. */
  async close(): Promise<void> {
    await Promise.all([...this.#lent.keys()].map(holder => this.#evict(holder)))
  }

  #serve(): void {
    let coming = this.#evicting
    for (const waiter of this.#waiting) {
      if (waiter.use === 'write' && this.#writers >= this.#writersMax) continue
      if (this.#held < this.#max) {
        this.#take(waiter.use)
        waiter.grant()
      } else if (coming > 0) {
        coming -= 1
      } else {
        const [holder] = this.#lent.keys()
        if (holder === undefined) return
        void this.#evict(holder)
      }
    }
  }

  #take(use: Use): void {
    this.#held += 1
    if (use === 'write') this.#writers += 1
  }

  async #evict(holder: object): Promise<void> {
    const close = this.#lent.get(holder)
    this.#lent.delete(holder)
    this.#evicting += 1
    try {
      await close?.()
    } catch {
      // Closing a descriptor that was only read from loses nothing, and frees it even where it reports an error.
    } finally {
      this.#evicting -= 1
      this.release('read')
    }
  }
}
