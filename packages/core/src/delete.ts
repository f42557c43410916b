/**
 * Direct removal: a private candidate for each key. Mark (refused under a pin), ask the sources, remove unless a put or pin
 * cancelled the mark meanwhile. The sources are asked after the marks, so a reference written under a pin is either
 * seen by them or has cancelled the mark (`model.mjs` 3 in the design; docs/spec/sweep.md, direct delete).
 */
import { dropTrashUnderLease } from './drop.js'
import type { DeleteMark, Place, Removal, RemoveOutcome } from './engine.js'
import type { BlobKey } from './key.js'
import { KEY_BATCH, PAGE_SIZE, REMOVE_BATCH } from './limits.js'
import type { Pins } from './pins.js'
import type { Pool } from './pool.js'
import type { LivenessView } from './sweep/liveness.js'
import { SweepStop } from './sweep/report.js'

/** What became of one key. */
export type DeleteOutcome = 'deleted' | 'absent' | 'pinned' | 'live' | 'source-failed'

interface Target {
  readonly key: BlobKey
  /** Remove only if the entry still lies there: a repair must not take what a put has healed. */
  readonly at?: Place
}

interface Marked extends Target {
  readonly mark: DeleteMark
}

interface DeleteParts {
  readonly pool: Pool
  readonly pins: Pins
  /** Undefined where no source is registered: then only pins protect. */
  readonly view: LivenessView | undefined
}

export interface Deletion {
  readonly outcomes: ReadonlyMap<BlobKey, DeleteOutcome>
  /** Why a source could not be asked. */
  readonly cause?: unknown
}

/** Removes up to a batch of keys, each by its own arbitration. Own releases count, own pins are renewed before. */
export async function deleteKeys(parts: DeleteParts, targets: readonly Target[]): Promise<Deletion> {
  const { pool, pins } = parts
  const outcomes = new Map<BlobKey, DeleteOutcome>()
  if (!(await pool.exists())) {
    for (const { key } of targets) outcomes.set(key, 'absent')
    return { outcomes }
  }
  await pool.establish()
  await pins.flush()
  await pins.renew()
  const marked = await mark(pool, targets, outcomes)
  if (marked.length === 0) return { outcomes }
  const { live, cause, interrupted } = await askSources(parts.view, marked)
  const removed = await remove(pool, marked, live)
  if (interrupted) throw cause
  for (const [i, { key }] of marked.entries()) {
    const outcome = outcomeOf(removed[i] as RemoveOutcome, key, live)
    outcomes.set(key, outcome === 'pinned' && (await isLiveByTable(pool, key)) ? 'live' : outcome)
  }
  await dropAtOnce(pool, removed)
  return cause === undefined ? { outcomes } : { outcomes, cause }
}

/** Marks all targets; side by side, so that a catalog may join them. Those that cannot be marked have their outcome. */
async function mark(
  pool: Pool,
  targets: readonly Target[],
  outcomes: Map<BlobKey, DeleteOutcome>
): Promise<readonly Marked[]> {
  const marked: Marked[] = []
  for (let i = 0; i < targets.length; i += KEY_BATCH) {
    const batch = targets.slice(i, i + KEY_BATCH)
    const marks = await Promise.all(batch.map(({ key }) => pool.catalog.mark(key)))
    for (const [n, target] of batch.entries()) {
      const answer = marks[n] as (typeof marks)[number]
      if (typeof answer === 'string') outcomes.set(target.key, answer)
      else marked.push({ ...target, mark: answer.mark })
    }
  }
  return marked
}

async function remove(
  pool: Pool,
  marked: readonly Marked[],
  live: ReadonlySet<BlobKey> | undefined
): Promise<readonly RemoveOutcome[]> {
  const removed: RemoveOutcome[] = []
  for (let i = 0; i < marked.length; i += REMOVE_BATCH) {
    const items = marked.slice(i, i + REMOVE_BATCH)
    const removals = items.map(target => removalOf(target, live === undefined || live.has(target.key)))
    removed.push(...(await pool.catalog.remove(removals, pool.trashDelayMs)))
  }
  return removed
}

interface Answer {
  /** Which marked keys are live; `undefined` where nobody knows, which keeps them all. */
  readonly live: ReadonlySet<BlobKey> | undefined
  readonly cause?: unknown
  /** Whether it was not a source that failed, but the caller or the closing store that would not wait. */
  readonly interrupted: boolean
}

async function askSources(view: LivenessView | undefined, marked: readonly Marked[]): Promise<Answer> {
  if (view === undefined) return { live: new Set(), interrupted: false }
  try {
    const answers = await view.ask()
    const live = new Set<BlobKey>()
    for (let i = 0; i < marked.length; i += PAGE_SIZE) {
      const keys = marked.slice(i, i + PAGE_SIZE).map(({ key }) => key)
      const answer = await answers.among(keys)
      for (const key of keys) if (answer.has(key)) live.add(key)
    }
    return { live, interrupted: false }
  } catch (error) {
    if (error instanceof SweepStop) return { live: undefined, cause: error.cause, interrupted: false }
    return { live: undefined, cause: error, interrupted: true }
  }
}

/** A key that must stay is sent all the same: that ends its mark. */
function removalOf({ key, mark, at }: Marked, live: boolean): Removal {
  return { kind: 'marked', key, mark, live, ...(at && { at }) }
}

function outcomeOf(removed: RemoveOutcome, key: BlobKey, live: ReadonlySet<BlobKey> | undefined): DeleteOutcome {
  if (removed.outcome === 'deleted' || removed.outcome === 'absent') return removed.outcome
  if (live === undefined) return 'source-failed'
  return live.has(key) ? 'live' : 'pinned'
}

/** A catalog that judges tables itself refuses without saying why; this is for the message, the decision is made. */
async function isLiveByTable(pool: Pool, key: BlobKey): Promise<boolean> {
  return ((await pool.catalog.tables?.liveBy(key)) ?? []).length > 0
}

/** Where bodies need not wait they are gone when the delete resolves. */
async function dropAtOnce(pool: Pool, removed: readonly RemoveOutcome[]): Promise<void> {
  const large = removed.some(outcome => outcome.outcome === 'deleted' && outcome.entry?.place.tier === 'large')
  // The entries are gone whatever happens here: a drop that fails stays in trash and is tried again by maintenance.
  if (large && pool.trashDelayMs === 0) await dropTrashUnderLease(pool).catch(triedAgainLater)
}

function triedAgainLater(): void {}
