/**
 * Turns of the event loop. An engine in this process answers without one, so that a long run of calls (a list, a verification)
 * would keep timers, signals and the renewal of pins waiting until its end. Whoever has used up a turn waits for the next.
 */

/** Longest run of calls without a turn, in milliseconds: far below what anybody notices, far above what a turn costs. */
const TURN_MS = 10

export class Turns {
  #beganMs = 0
  #isOpen = false
  #waiting: (() => void)[] = []

  /** Notes that something runs in this turn. */
  enter(): void {
    if (!this.#isOpen) this.#begin()
  }

  /** Takes a step in a turn that has time for it, after those that wait already. */
  next(step: () => void): void {
    this.#waiting.push(step)
    if (this.#waiting.length === 1) setImmediate(() => this.#serve())
  }

  #serve(): void {
    this.enter()
    let served = 0
    while (served < this.#waiting.length && !this.isSpent) this.#waiting[served++]?.()
    this.#waiting.splice(0, served)
    if (this.#waiting.length > 0) setImmediate(() => this.#serve())
  }

  #begin(): void {
    this.#isOpen = true
    this.#beganMs = performance.now()
    // Not without a reference: the event loop would wait for input first, and whoever that brings would find an old turn.
    setImmediate(() => {
      this.#isOpen = false
    })
  }

  /** Whether whoever comes now waits for a later turn: this one has lasted long enough, or others wait already. */
  get isBusy(): boolean {
    return this.#waiting.length > 0 || this.isSpent
  }

  /** Whether this turn has lasted long enough. */
  get isSpent(): boolean {
    return this.#isOpen && performance.now() - this.#beganMs > TURN_MS
  }
}
