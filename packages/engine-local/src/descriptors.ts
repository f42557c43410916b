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

/**
 * What can be lent. Links of a list: windows are lent one by one, and a map that empties each time makes a new table each time, where V8
 * looks whether to collect all garbage.
 */
export abstract class Loan {
  previous: Loan | undefined
  next: Loan | undefined
  isLent = false

  /** Closes the descriptor: somebody else needs one. */
  abstract giveUp(): Promise<void>
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
  /** Lent descriptors, longest lent first. */
  #longestLent: Loan | undefined
  #latestLent: Loan | undefined

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

  /** Offers an open descriptor to whoever needs one: `giveUp` is called then, at most once. */
  lend(loan: Loan): void {
    loan.isLent = true
    loan.previous = this.#latestLent
    if (this.#latestLent === undefined) this.#longestLent = loan
    else this.#latestLent.next = loan
    this.#latestLent = loan
    if (this.#waiting.size > 0) this.#serve()
  }

  /** Takes back what was lent; false if somebody needed it in the meantime. */
  reclaim(loan: Loan): boolean {
    if (!loan.isLent) return false
    const { previous, next } = loan
    if (previous === undefined) this.#longestLent = next
    else previous.next = next
    if (next === undefined) this.#latestLent = previous
    else next.previous = previous
    loan.previous = undefined
    loan.next = undefined
    loan.isLent = false
    return true
  }

  /** Closes everything that is lent: readers that nobody pulls or ends any more. */
  async close(): Promise<void> {
    const evicted: Promise<void>[] = []
    while (this.#longestLent !== undefined) evicted.push(this.#evict(this.#longestLent))
    await Promise.all(evicted)
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
        if (this.#longestLent === undefined) return
        void this.#evict(this.#longestLent)
      }
    }
  }

  #take(use: Use): void {
    this.#held += 1
    if (use === 'write') this.#writers += 1
  }

  async #evict(loan: Loan): Promise<void> {
    this.reclaim(loan)
    this.#evicting += 1
    try {
      await loan.giveUp()
    } catch {
      // Closing a descriptor that was only read from loses nothing, and frees it even where it reports an error.
    } finally {
      this.#evicting -= 1
      this.release('read')
    }
  }
}
