/**
 * Deadlines of many short calls, kept by one coarse timer: a timer for each call would cost more than most calls do.
 * A deadline fires at most one tick late. The timer runs only while calls are under way.
 */

/** Granularity of deadlines, in milliseconds. */
const TICK_MS = 50

interface Ticket {
  readonly deadlineMs: number
  readonly expire: () => void
}

export class Deadlines {
  readonly #tickets = new Set<Ticket>()
  #timer: NodeJS.Timeout | undefined

  /** Calls `expire` once `performance.now()` has passed `deadlineMs`, unless the answer is called before. */
  watch(deadlineMs: number, expire: () => void): () => void {
    const ticket = { deadlineMs, expire }
    this.#tickets.add(ticket)
    // An engine call under way keeps the process alive, so this timer need not, and its last tick may find nothing.
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref()
    return () => this.#tickets.delete(ticket)
  }

  #tick(): void {
    const now = performance.now()
    for (const ticket of this.#tickets) {
      if (ticket.deadlineMs > now) continue
      this.#tickets.delete(ticket)
      ticket.expire()
    }
    if (this.#tickets.size === 0) this.stop()
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }
}
