/**
 * Dropping: the last step in the life of a body. Only what lies in the catalog's trash is dropped, and the trash row goes
 * last, so a stop anywhere in between is made good by the next run. One failure holds nobody else up.
 */
import type { DropRecord, DropResult, StageId, Trashed } from './engine.js'
import type { BlobKey } from './key.js'
import { DROP_BATCH, DROP_RETRY_MS, LEASE_WAITS_MS } from './limits.js'
import type { Pool } from './pool.js'

/** A drop that did not succeed: its entry stays gone, its trash row stays for a later try. */
export interface FailedDrop {
  readonly locator: string
  readonly key: BlobKey | undefined
  readonly cause: unknown
}

export interface Dropped {
  /** Bodies dropped. */
  count: number
  /** Bytes of published bodies dropped. */
  bytes: number
  readonly failed: FailedDrop[]
}

export function nothingDropped(): Dropped {
  return { count: 0, bytes: 0, failed: [] }
}

/** Drops all trash that is due, page by page; `proceed` is asked before each page is looked up and before it is dropped. */
export async function dropTrash(pool: Pool, tally: Dropped, proceed: () => boolean): Promise<void> {
  if (!pool.hasBodies) return
  let after: string | undefined
  while (proceed()) {
    const page = await pool.catalog.trash(after, DROP_BATCH)
    if (page.length > 0 && proceed()) await dropPage(pool, page, tally)
    if (page.length < DROP_BATCH) return
    after = page.at(-1)?.what
  }
}

/** Runs of one store that need a lease of their own: whoever asks while one is under way shares the next. */
const runs = new WeakMap<Pool, { readonly now: Promise<void>; next: Promise<void> | undefined }>()

/**
 * The same for who holds no lease yet. A sweep that holds it drops at its end; whoever holds still for a copy needs the bodies. So
 * what cannot be done soon is left to maintenance.
 */
export function dropTrashUnderLease(pool: Pool): Promise<void> {
  const run = runs.get(pool)
  if (run === undefined) return begin(pool)
  run.next ??= run.now.catch(leftToMaintenance).then(() => begin(pool))
  return run.next
}

function begin(pool: Pool): Promise<void> {
  const now = dropOnce(pool).finally(() => {
    const run = runs.get(pool)
    if (run?.now === now && run.next === undefined) runs.delete(pool)
  })
  runs.set(pool, { now, next: undefined })
  return now
}

async function dropOnce(pool: Pool): Promise<void> {
  // A catalog in memory forgets its trash with its process, and nobody can make a copy of it.
  if (pool.volatile) return dropTrash(pool, nothingDropped(), () => true)
  for (const waitMs of [0, ...LEASE_WAITS_MS]) {
    if (waitMs > 0) await new Promise(resolve => setTimeout(resolve, waitMs))
    const lease = await pool.lease()
    if (lease === undefined) continue
    try {
      return await dropTrash(pool, nothingDropped(), () => !lease.lost.aborted)
    } finally {
      await pool.catalog.releaseLease(lease)
    }
  }
}

function leftToMaintenance(): void {}

/** Drops bodies of stages that were just moved to trash. Best effort: what fails is tried again by maintenance. */
export async function dropStages(pool: Pool, stages: readonly StageId[]): Promise<void> {
  const trashed = stages.map(what => ({ what, key: undefined, length: undefined, attempts: 0 }))
  await dropPage(pool, trashed, nothingDropped())
}

async function dropPage(pool: Pool, page: readonly Trashed[], tally: Dropped): Promise<void> {
  const results = await pool.bodies.drop(page.map(({ what }) => what))
  const records = page.map((trashed, i) => recordOf(trashed, results[i] as DropResult, tally))
  await pool.catalog.dropped(records)
}

function recordOf({ what, key, length, attempts }: Trashed, { error }: DropResult, tally: Dropped): DropRecord {
  if (error !== undefined) {
    tally.failed.push({ locator: what, key, cause: error })
    return { what, retryAfterMs: Math.min(DROP_RETRY_MS.first * 2 ** attempts, DROP_RETRY_MS.longest) }
  }
  tally.count++
  tally.bytes += length ?? 0
  return { what }
}
