/**
 * Who may have a session next: first come, first served, within each call's patience.
 *
 * Holders keep their session while user code runs (the producer of a large body may be a reader of this very store), so one
 * place is never theirs: whoever only borrows always gets on, and then so do the holders.
 */
import { type Call, EngineFault } from '@alkblobs/core/engine'
import { checkPatience, watch } from './deadline.js'

export type Use = 'borrow' | 'hold'

interface Waiter {
  readonly use: Use
  readonly grant: () => void
  readonly refuse: (error: unknown) => void
}

export class Places {
  readonly #max: number
  #taken = 0
  #held = 0
  readonly #waiting = new Set<Waiter>()

  constructor(max: number) {
    this.#max = max
  }

  /** Waits for a place. @throws EngineFault `exhausted` when the call's deadline passes first, or its signal's reason. */
  async take(use: Use, call: Call): Promise<void> {
    checkPatience(call)
    await new Promise<void>((resolve, reject) => {
      const settle = (then: () => void) => {
        this.#waiting.delete(waiter)
        stop()
        then()
      }
      const waiter: Waiter = { use, grant: () => settle(resolve), refuse: error => settle(() => reject(error)) }
      const stop = watch(call, reason => waiter.refuse(call.signal?.aborted ? reason : exhausted(this.#max)))
      this.#waiting.add(waiter)
      this.#serve()
    })
  }

  free(use: Use): void {
    this.#taken -= 1
    if (use === 'hold') this.#held -= 1
    this.#serve()
  }

  /** Nobody gets a place any more. */
  refuseAll(error: unknown): void {
    for (const waiter of [...this.#waiting]) waiter.refuse(error)
  }

  #serve(): void {
    for (const waiter of [...this.#waiting]) {
      if (this.#taken === this.#max) return
      if (waiter.use === 'hold' && this.#held === this.#max - 1) continue
      this.#taken += 1
      if (waiter.use === 'hold') this.#held += 1
      waiter.grant()
    }
  }
}

function exhausted(max: number): EngineFault {
  return new EngineFault('exhausted', `all ${max} sessions are in use`)
}
