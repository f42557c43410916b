/** `why`: what protects an entry, or what a sweep would do with it now. */

import type { Owner } from './engine.js'
import { EngineError } from './errors.js'
import type { BlobKey } from './key.js'
import type { Pins } from './pins.js'
import type { Pool } from './pool.js'
import type { LivenessView } from './sweep/liveness.js'
import { SweepStop } from './sweep/report.js'

export interface Why {
  readonly key: BlobKey
  readonly entry: { readonly length: number; readonly tier: 'kv' | 'large' } | undefined
  /** Pins of every instance; `own` marks those of this store. */
  readonly pins: readonly { readonly owner: string; readonly own: boolean; readonly expiresInMs: number }[]
  /** Names of the liveness sources that reference the key. */
  readonly liveBy: readonly string[]
  /** The candidate's row, if a sweep has staged the key. */
  readonly window: { readonly stagedAgoMs: number; readonly dueInMs: number; readonly cancelled: boolean } | undefined
  /** What a sweep would do now. */
  readonly verdict:
    | 'absent'
    | 'pinned'
    | 'live'
    | 'no-sources'
    | 'source-failed'
    | 'waiting'
    | 'would-be-staged'
    | 'would-be-deleted'
  /** The verdict as a sentence. */
  readonly reason: string
}

const REASONS: Record<Why['verdict'], string> = {
  absent: 'there is no such entry',
  pinned: 'a pin protects it until it is released or expires',
  live: 'a liveness source references it',
  'no-sources': 'nothing protects it, but no liveness source is registered, and a sweep without one removes nothing',
  'source-failed':
    'a liveness source could not say whether it references it, and a sweep that cannot know removes nothing',
  waiting: 'a sweep has staged it; a later sweep may remove it once the window delay has passed',
  'would-be-staged': 'nothing protects it: the next sweep stages it as a candidate',
  'would-be-deleted': 'nothing protects it: the next sweep removes it'
}

interface WhyParts {
  readonly pool: Pool
  readonly pins: Pins
  readonly owner: Owner
  readonly view: LivenessView | undefined
}

export async function why({ pool, pins: own, owner, view }: WhyParts, key: BlobKey): Promise<Why> {
  await pool.ready()
  // What this store has released must not look pinned for the moment that its row outlives it.
  await own.flush()
  const { entry, pins, window } = await pool.catalog.explain(key)
  const liveBy = entry === undefined || view === undefined ? [] : await liveByOf(pool, view, key)
  const found = {
    key,
    entry: entry && { length: entry.length, tier: entry.place.tier },
    pins: pins.map(pin => ({ owner: pin.owner, own: pin.owner === owner, expiresInMs: pin.expiresInMs })),
    liveBy: liveBy ?? [],
    window
  }
  const verdict = verdictOf(
    found,
    { hasSources: view !== undefined, hasFailed: liveBy === undefined },
    pool.catalog.form
  )
  return { ...found, verdict, reason: REASONS[verdict] }
}

/** The sources that reference the key; `undefined` if one of them could not say. */
async function liveByOf(pool: Pool, view: LivenessView, key: BlobKey): Promise<string[] | undefined> {
  try {
    return [...(await view.namesFor(key)), ...((await pool.catalog.tables?.liveBy(key)) ?? [])]
  } catch (error) {
    if (error instanceof SweepStop || (error instanceof EngineError && error.kind === 'liveness')) return undefined
    throw error
  }
}

interface SourcesSeen {
  readonly hasSources: boolean
  readonly hasFailed: boolean
}

function verdictOf(
  found: Omit<Why, 'verdict' | 'reason'>,
  { hasSources, hasFailed }: SourcesSeen,
  form: 'inline' | 'durable'
): Why['verdict'] {
  if (found.entry === undefined) return 'absent'
  if (found.pins.some(({ expiresInMs }) => expiresInMs > 0)) return 'pinned'
  if (hasFailed) return 'source-failed'
  if (found.liveBy.length > 0) return 'live'
  if (!hasSources) return 'no-sources'
  if (form === 'inline') return 'would-be-deleted'
  if (found.window === undefined || found.window.cancelled) return 'would-be-staged'
  return found.window.dueInMs > 0 ? 'waiting' : 'would-be-deleted'
}
