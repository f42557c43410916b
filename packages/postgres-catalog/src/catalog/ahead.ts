/**
 * Pages of candidates that were looked at together with one that was asked for. A page may be as old as this: what it calls a candidate
 * is looked at again when it is staged, and before it is removed, and what it calls protected is left to the next sweep.
 */
import type { CandidatePage } from '@alkblobs/core/engine'

/** A sweep that does something long between two pages looks anew. */
const AGE_MS_MAX = 1_000

export class PagesAhead {
  #pages: CandidatePage[] = []
  /** The cursor of the first of them, and the limit they were looked at with. */
  #after: string | undefined
  #limit = 0
  #untilMs = 0

  /** The page behind the cursor, once, if it was looked at a moment ago. */
  take(after: string | undefined, limit: number): CandidatePage | undefined {
    if (after === undefined || after !== this.#after || limit !== this.#limit) return undefined
    if (performance.now() > this.#untilMs) return undefined
    const page = this.#pages.shift()
    this.#after = page?.next
    return page
  }

  /** Keeps all but the first, which it answers. */
  keep([first, ...others]: readonly CandidatePage[], limit: number): CandidatePage {
    this.#pages = others
    this.#after = first?.next
    this.#limit = limit
    this.#untilMs = performance.now() + AGE_MS_MAX
    return first as CandidatePage
  }
}
