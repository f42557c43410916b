/**
 * Answers of engines in words: for the story, and for the history of whoever is answered. So they say all of an answer that its
 * receiver's further course can depend on: an entry's length goes without saying, for it is that of its key's content.
 */
import type {
  CandidatePage,
  DropResult,
  Entry,
  Found,
  Lost,
  Maintenance,
  PoolRecord,
  PublishOutcome,
  RemoveOutcome,
  Trashed
} from '@alkblobs/core/engine'

const list = (words: readonly string[]) => (words.length === 0 ? 'none' : words.join(', '))

function entry(found: Entry | undefined): string {
  if (found === undefined) return 'absent'
  return found.place.tier === 'kv' ? `inline (${found.place.length})` : `at ${found.place.locator}`
}

export const telling = {
  publish: (outcomes: readonly PublishOutcome[]) =>
    list(outcomes.map(each => ('entry' in each ? `${each.outcome}, ${entry(each.entry)}` : each.outcome))),
  record: (record: PoolRecord | undefined) =>
    record === undefined ? 'no pool' : `pool ${record.poolId}${record.bodiesClaimed ? ', with bodies' : ''}`,
  entries: (entries: readonly (Entry | undefined)[]) => list(entries.map(entry)),
  remove: (outcomes: readonly RemoveOutcome[]) =>
    list(outcomes.map(each => (each.outcome === 'deleted' ? `deleted, ${entry(each.entry)}` : each.outcome))),
  renew: ({ pins, stages }: Lost) =>
    pins.length + stages.length === 0
      ? 'all renewed'
      : `lost ${list([...pins.map(({ key, pin }) => `${key} at ${pin.generation}`), ...stages])}`,
  candidates: ({ scanned, live, alreadyStaged, cancelled, keys }: CandidatePage) =>
    `scanned ${scanned}: ${live} live, ${alreadyStaged} staged (${cancelled} cancelled), unprotected: ${list(keys)}`,
  keys: (keys: readonly string[]) => list(keys),
  yes: (answers: readonly boolean[]) => list(answers.map(answer => (answer ? 'yes' : 'no'))),
  trash: (trash: readonly Trashed[]) =>
    list(trash.map(({ what, attempts }) => `${what}${attempts > 0 ? ' again' : ''}`)),
  drop: (results: readonly DropResult[]) =>
    list(results.map(({ what, error }) => `${what} ${error === undefined ? 'gone' : `failed: ${error}`}`)),
  scan: ({ found }: { readonly found: readonly Found[] }) =>
    list(found.map(({ stage, sealed }) => (sealed === undefined ? `half ${stage}` : sealed.locator))),
  maintain: ({ pinsReaped, stagesTrashed }: Maintenance) => `${pinsReaped} pins, ${stagesTrashed} stages`
}
