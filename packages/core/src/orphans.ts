/**
 * Orphans: bodies that no entry, no stage and no trash knows. The one way to make one is a writer that slept past its
 * stage's expiry and died before it looked again.
 *
 * A body is called an orphan only by a look at the catalog made after the body was seen: its stage was written down
 * before it was made, so it cannot become known later. A half body needs one more look at the medium after that: its stage
 * may have ended because it was sealed and published meanwhile. What is still half then never can be.
 */
import type { Found } from './engine.js'
import { PAGE_SIZE } from './limits.js'
import type { Pool } from './pool.js'

export interface Orphan {
  /** The body's name on its medium. */
  readonly what: string
  /** Its length in bytes, where its name tells. */
  readonly length: number | undefined
}

/** Every orphan there is. `reclaim` also moves them to trash, each only if it is still unknown then. */
export async function* orphansOf(pool: Pool, reclaim: boolean): AsyncGenerator<Orphan> {
  if (!pool.hasBodies) return
  let after: string | undefined
  do {
    const page = await pool.bodies.scan(after, PAGE_SIZE)
    const orphans = await unknown(pool, page.found, after)
    if (reclaim && orphans.length > 0) await pool.catalog.discard(orphans)
    for (const { stage, sealed } of orphans) yield { what: sealed?.locator ?? stage, length: sealed?.length }
    after = page.next
  } while (after !== undefined)
}

async function unknown(pool: Pool, found: readonly Found[], after: string | undefined): Promise<readonly Found[]> {
  if (found.length === 0) return []
  const known = await pool.catalog.known(found)
  const suspects = found.filter((_, i) => known[i] !== true)
  if (suspects.every(({ sealed }) => sealed !== undefined)) return suspects
  const again = await pool.bodies.scan(after, PAGE_SIZE)
  const stillHalf = new Set(again.found.flatMap(({ stage, sealed }) => (sealed === undefined ? [stage] : [])))
  return suspects.filter(({ stage, sealed }) => sealed !== undefined || stillHalf.has(stage))
}
