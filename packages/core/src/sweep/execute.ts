/** Execution: takes every due candidate before arbitration, and removes those that nothing protects. */
import type { Removal, RemoveOutcome } from '../engine.js'
import type { BlobKey } from '../key.js'
import { PAGE_SIZE, REMOVE_BATCH } from '../limits.js'
import type { SweepRun } from './run.js'

export async function executeDue(run: SweepRun): Promise<void> {
  let after: string | undefined
  do {
    run.assertGoing()
    if (!run.hasTime || run.deletesLeft <= 0) return
    const page = await run.pool.catalog.due(run.held, after, PAGE_SIZE)
    if (page.keys.length > 0) await executePage(run, page.keys)
    run.progress('execute')
    after = page.next
  } while (after !== undefined)
}

async function executePage(run: SweepRun, keys: readonly BlobKey[]): Promise<void> {
  const live = await run.live.among(keys)
  for (let i = 0; i < keys.length && run.deletesLeft > 0; ) {
    // A sweep that may remove three more takes three candidates: how many of them arbitration lets go is not known before.
    const batch = keys.slice(i, i + Math.min(REMOVE_BATCH, run.deletesLeft))
    i += batch.length
    run.assertGoing()
    const items = batch.map((key): Removal => ({ kind: 'candidate', key, live: live.has(key) }))
    const outcomes = await run.pool.catalog.remove(items, run.pool.trashDelayMs, run.held)
    for (const outcome of outcomes) tally(run, outcome)
  }
}

function tally({ report }: SweepRun, outcome: RemoveOutcome): void {
  if (outcome.outcome === 'deleted') {
    report.deleted++
    // Inline bytes went with the entry; those in the large tier count when they are dropped.
    if (outcome.entry?.place.tier === 'kv') report.bytesDeleted += outcome.entry.place.length
  } else if (outcome.outcome === 'cancelled') {
    report.cancelledByArbitration++
  }
}
