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
  const judged = run.options.dryRun === true ? [...page.keys, ...page.cancelled] : page.keys
  const live = judged.length > 0 ? await run.live.among(judged) : new Set()
  const dead = judged.filter(key => !live.has(key))
  run.assertGoing()
  const staged = await stage(run, dead)
  report.scanned += page.scanned
  report.live += page.live + judged.length - staged
  report.alreadyStaged += page.alreadyStaged - (judged.length - page.keys.length)
  report.candidatesStaged += staged
}

/** A dry run counts rows that a put has cancelled as the next sweep would, which ends them and judges their keys anew. */
async function stage(run: SweepRun, dead: readonly BlobKey[]): Promise<number> {
  if (run.options.dryRun === true || dead.length === 0) return dead.length
  return (await run.pool.catalog.stageCandidates(run.held, dead)).length
}
