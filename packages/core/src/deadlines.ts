/**
 * Deadlines of many short calls, kept by one coarse timer: a timer for each call would cost more than most calls do.
 * A deadline fires at most one tick late. The timer runs only while calls are under way.
 *
 * What is watched is linked into a list. A set would do the same, but V8 makes a new table whenever the last element of one is deleted, and
 * makes it where it looks whether to collect all garbage: with windows of a large blob in memory that was twice as many full collections.
 */

/** Granularity of deadlines, in milliseconds. */
const TICK_MS = 50

/** One watched deadline. Its links are the list's. */
export interface Ticket {
  readonly deadlineMs: number
  readonly expire: () => void
  previous: Ticket | undefined
  next: Ticket | undefined
  isWatched: boolean
}

export class Deadlines {
  #first: Ticket | undefined
  #last: Ticket | undefined
  #timer: NodeJS.Timeout | undefined

  /** Calls `expire` once `performance.now()` has passed `deadlineMs`, unless `end` is called before. */
  watch(deadlineMs: number, expire: () => void): Ticket {
    const ticket: Ticket = { deadlineMs, expire, previous: this.#last, next: undefined, isWatched: true }
    if (this.#last === undefined) this.#first = ticket
    else this.#last.next = ticket
    this.#last = ticket
    // An engine call under way keeps the process alive, so this timer need not, and its last tick may find nothing.
    this.#timer ??= setInterval(() => this.#tick(), TICK_MS).unref()
    return ticket
  }

  /** Watches a ticket no more; idempotent. It lets its neighbours go: a call that hangs holds its ticket, and would hold all that come after it. */
  end(ticket: Ticket): void {
    if (!ticket.isWatched) return
    ticket.isWatched = false
    const { previous, next } = ticket
    if (previous === undefined) this.#first = next
    else previous.next = next
    if (next === undefined) this.#last = previous
    else next.previous = previous
    ticket.previous = undefined
    ticket.next = undefined
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#timer = undefined
  }

  #tick(): void {
    const now = performance.now()
    for (const ticket of this.#due(now)) {
      this.end(ticket)
      ticket.expire()
    }
    if (this.#first === undefined) this.stop()
  }

  #due(now: number): Ticket[] {
    const due: Ticket[] = []
    for (let ticket = this.#first; ticket !== undefined; ticket = ticket.next) {
      if (ticket.deadlineMs <= now) due.push(ticket)
    }
    return due
  }
}
