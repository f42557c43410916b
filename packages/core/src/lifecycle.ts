/**
 * Open, closing, closed. Every public operation runs inside `run`, so that `close` knows what is under way and every
 * call on a closed store gets the same answer.
 */
import { StoreClosedError } from './errors.js'

export class Lifecycle {
  readonly #abort = new AbortController()
  #closed: Promise<void> | undefined
  #running = 0
  #idle: (() => void) | undefined

  /** Fires when operations that wait for user code must give up; its reason is a StoreClosedError. */
  readonly closing: AbortSignal = this.#abort.signal

  /** @throws StoreClosedError */
  assertOpen(): void {
    if (this.#closed !== undefined) throw new StoreClosedError()
  }

  /** Runs one operation; refused once the store is closing. */
  async run<T>(operation: () => Promise<T>): Promise<T> {
    this.enter()
    try {
      return await operation()
    } finally {
      this.leave()
    }
  }

  /** Counts an operation that runs from now until it says `leave`, once. @throws StoreClosedError */
  enter(): void {
    this.assertOpen()
    this.#running++
  }

  leave(): void {
    if (--this.#running === 0) this.#idle?.()
  }

  /** Marks something as under way until the answer is called: a writer or a reader that lives across calls. */
  begin(): () => void {
    this.#running++
    let ended = false
    return () => {
      if (ended) return
      ended = true
      this.leave()
    }
  }

  /** Refuses new operations, waits `drainMs` for those under way, interrupts the rest, then runs `release`. Idempotent. */
  close(drainMs: number, release: () => Promise<void>): Promise<void> {
    this.#closed ??= this.#close(drainMs, release)
    return this.#closed
  }

  async #close(drainMs: number, release: () => Promise<void>): Promise<void> {
    const idle = new Promise<void>(resolve => {
      this.#idle = resolve
      if (this.#running === 0) resolve()
    })
    if (drainMs > 0 && this.#running > 0) await withinMs(idle, drainMs)
    this.#abort.abort(new StoreClosedError())
    await idle
    await release()
  }
}

async function withinMs(promise: Promise<void>, ms: number): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<void>(resolve => {
    timer = setTimeout(resolve, ms)
  })
  await Promise.race([promise, late])
  clearTimeout(timer)
}
