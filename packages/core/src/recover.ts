/**
 * What a catalog in memory does before its first read: it enters every whole body that its large tier holds, through the very steps of
 * a put, stage and then publish. The first body of a key becomes the entry; others, and halves, end as trash.
 */
import type { CheckedBodies } from './checked-bodies.js'
import type { CheckedCatalog } from './checked-catalog.js'
import type { Found, StageId } from './engine.js'
import { PAGE_SIZE } from './limits.js'

export async function recover(catalog: CheckedCatalog, bodies: CheckedBodies, stageTtlMs: number): Promise<void> {
  let after: string | undefined
  do {
    const { found, next } = await bodies.scan(after, PAGE_SIZE)
    const known = found.length === 0 ? [] : await catalog.known(found)
    for (const [i, { stage, sealed }] of found.entries()) {
      if (known[i] === true) continue
      await catalog.stage([{ id: stage, ttlMs: stageTtlMs }])
      const entered = sealed?.whole === true && (await enter(catalog, stage, sealed))
      if (!entered) await catalog.unstage([stage])
    }
    after = next
  } while (after !== undefined)
}

async function enter(catalog: CheckedCatalog, stage: StageId, sealed: NonNullable<Found['sealed']>): Promise<boolean> {
  const { key, length, locator } = sealed
  const { outcome } = await catalog.publish({ key, length, bytes: { kind: 'staged', stage, locator }, trashDelayMs: 0 })
  return outcome === 'created'
}
