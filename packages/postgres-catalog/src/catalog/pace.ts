/**
 * How many entries a step of a sweep looks at: as many as take a moment. A sweep begins with few, since nobody knows yet what an entry
 * costs, and goes on from there; what reads a whole table of the application each time does so less often with longer steps.
 */
import type { CandidatePage } from '@alkblobs/core/engine'

/** Entries a step looks at for each candidate it may answer. */
const FIRST = 8
const LONGEST = 512
/** How long a step is to take, in milliseconds, and how many times as much it looks at to get there. */
const WANTED_MS = 100
const GROWTH_MAX = 16
/** The part of a call's time that one step may take; half of it is no reason to look at less. */
const SHARE = 1 / 10

export class Pace {
  #perCandidate = FIRST
  /** Where the step that was measured ended. */
  #next: string | undefined

  /** How many entries to look at from a cursor on, a whole number. Whoever does not go on where the last step ended begins anew. */
  countFrom(after: string | undefined, limit: number): number {
    if (after === undefined || after !== this.#next) this.#perCandidate = FIRST
    return limit * this.#perCandidate
  }

  /** What a step has found, how long it took and how long it might have taken, in milliseconds. */
  took({ scanned, next }: CandidatePage, count: number, ms: number, mostMs: number): void {
    this.#next = next
    const factor = Math.floor(this.#perCandidate * change(scanned < count, ms, mostMs * SHARE))
    this.#perCandidate = Math.min(Math.max(factor, FIRST), LONGEST)
  }
}

/** A step that was ended by its candidates has looked in vain at most of what came behind them. */
function change(isCut: boolean, ms: number, mostMs: number): number {
  if (isCut || ms > mostMs) return 1 / 2
  if (ms > mostMs / 2) return 1
  return Math.min(Math.max(Math.floor(WANTED_MS / ms), 2), GROWTH_MAX)
}
