/** Staging: finds entries that nobody protects and writes them down as candidates. Removes nothing. */
import type { CandidatePage } from '../engine.js'
import type { BlobKey } from '../key.js'
import { PAGE_SIZE } from '../limits.js'
import type { SweepRun } from './run.js'

/**
 * Looks at every entry in key order. The sources judge what pins do not protect; the catalog then looks at the pins once
 * more, in the transaction that stages, so that a key pinned in between counts as live.
 */
export async function stageCandidates(run: SweepRun): Promise<void> {
  let after: string | undefined
  do {
    run.assertGoing()
    if (!run.hasTime) return
    const page = await run.pool.catalog.candidates(run.lease, after, PAGE_SIZE)
    await stagePage(run, page)
    run.progress('stage')
    after = page.next
  } while (after !== undefined)
}

async function stagePage(run: SweepRun, page: CandidatePage): Promise<void> {
  const { report } = run
  const live = page.keys.length > 0 ? await run.live.among(page.keys) : new Set()
  const dead = page.keys.filter(key => !live.has(key))
  run.assertGoing()
  const staged = await stage(run, page, dead)
  report.scanned += page.scanned
  report.live += page.live + page.keys.length - dead.length + (dead.length - staged.newly)
  report.alreadyStaged += page.alreadyStaged - staged.anew
  report.candidatesStaged += staged.newly + staged.anew
}

/** `anew`: rows that a put has cancelled; a dry run counts them as the next sweep would, which ends and re-stages them. */
async function stage(
  run: SweepRun,
  page: CandidatePage,
  dead: readonly BlobKey[]
): Promise<{ newly: number; anew: number }> {
  if (run.options.dryRun === true) return { newly: dead.length, anew: page.cancelled }
  if (dead.length === 0) return { newly: 0, anew: 0 }
  const staged = await run.pool.catalog.stageCandidates(run.held, dead)
  return { newly: staged.length, anew: 0 }
}
