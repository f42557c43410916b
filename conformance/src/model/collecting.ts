/** What a sweep, a delete and the question why answer, told from the model before the store is asked. */
import type { DeleteOutcome, SweepReport, Why } from '@alkblobs/core'
import type { Holder } from './holder.js'
import type { PoolModel } from './pool.js'
import { Judgement } from './sources.js'

/** A report without what no model can tell: how long it took, and the error behind a stop. */
export type SweepPrediction = Required<
  Pick<
    SweepReport,
    | 'scanned'
    | 'live'
    | 'alreadyStaged'
    | 'candidatesStaged'
    | 'deleted'
    | 'cancelledByArbitration'
    | 'bytesDeleted'
    | 'pinsReaped'
    | 'stagesReclaimed'
  >
> & { aborted: SweepReport['aborted']; source: string | undefined }

export interface SweepTerms {
  readonly dryRun: boolean
  readonly maxDeletes: number
  /** Whether the catalog judges the keys that sources enumerate. */
  readonly catalogJudges: boolean
  /** Which of the due rows a bounded sweep got to: the order among them is the catalog's. */
  readonly isExecuted: (content: number) => boolean
}

/** A source failed at this point of the sweep; what was done is done. */
class Stop {
  constructor(readonly source: string) {}
}

class Sweep {
  readonly #pool: PoolModel
  readonly #terms: SweepTerms
  readonly #judgement: Judgement
  readonly report: SweepPrediction = {
    aborted: undefined,
    source: undefined,
    scanned: 0,
    live: 0,
    alreadyStaged: 0,
    candidatesStaged: 0,
    deleted: 0,
    cancelledByArbitration: 0,
    bytesDeleted: 0,
    pinsReaped: 0,
    stagesReclaimed: 0
  }

  constructor(pool: PoolModel, holder: Holder, terms: SweepTerms) {
    this.#pool = pool
    this.#terms = terms
    this.#judgement = new Judgement(holder, terms.catalogJudges && !terms.dryRun)
  }

  run(holder: Holder): void {
    const pool = this.#pool
    holder.flush(pool)
    if (this.#terms.dryRun) {
      this.#ask()
      this.#stage()
      return
    }
    holder.renew(pool)
    this.#ask()
    Object.assign(this.report, pool.maintain())
    const steps = [() => this.#execute(), () => this.#stage()]
    for (const step of pool.form === 'durable' ? steps : steps.reverse()) step()
    this.report.bytesDeleted += pool.drop().bytes
  }

  #ask(): void {
    const failed = this.#judgement.failsAtOnce()
    if (failed !== undefined) throw new Stop(failed)
  }

  #execute(): void {
    const pool = this.#pool
    const due = [...pool.window].filter(([, row]) => pool.isDue(row))
    if (due.length === 0 || this.#terms.maxDeletes === 0) return
    const failed = this.#judgement.failsFor(due.map(([content]) => content))
    if (failed !== undefined) throw new Stop(failed)
    for (const [content, row] of due) {
      if (!this.#terms.isExecuted(content)) continue
      pool.window.delete(content)
      const isTaken = !row.isCancelled && !this.#isProtected(content)
      if (!isTaken) this.report.cancelledByArbitration++
      else {
        this.report.deleted++
        if (pool.entries.has(content)) this.report.bytesDeleted += pool.take(content)
      }
    }
  }

  /** Protection of an entry at arbitration; what has no entry needs none. */
  #isProtected(content: number): boolean {
    const pool = this.#pool
    return pool.entries.has(content) && (pool.isPinned(content) || this.#judgement.isLive(content))
  }

  #stage(): void {
    const pool = this.#pool
    const unjudged: number[] = []
    for (const content of pool.present()) {
      this.report.scanned++
      const row = pool.window.get(content)
      if (pool.isPinned(content) || this.#judgement.isLiveForCatalog(content)) this.report.live++
      else if (row === undefined || (this.#terms.dryRun && row.isCancelled)) unjudged.push(content)
      else this.report.alreadyStaged++
    }
    const failed = this.#judgement.failsFor(unjudged)
    if (failed !== undefined) {
      // What a page that could not be judged held is not reported.
      Object.assign(this.report, { scanned: 0, live: 0, alreadyStaged: 0 })
      throw new Stop(failed)
    }
    for (const content of unjudged) {
      if (this.#judgement.isLiveForCore(content)) this.report.live++
      else {
        this.report.candidatesStaged++
        const row = { stagedAtMs: pool.nowMs, delayMs: pool.windowDelayMs, isCancelled: false }
        if (!this.#terms.dryRun) pool.window.set(content, row)
      }
    }
  }
}

/** What a sweep of this holder reports; the model is then as the pool is after it. */
export function predictSweep(pool: PoolModel, holder: Holder, terms: SweepTerms): SweepPrediction {
  const sweep = new Sweep(pool, holder, terms)
  if (holder.sources.length === 0) return { ...sweep.report, aborted: 'NoLivenessSources' }
  if (!pool.exists) return sweep.report
  try {
    sweep.run(holder)
  } catch (error) {
    if (!(error instanceof Stop)) throw error
    Object.assign(sweep.report, { aborted: 'ProtectFailed', source: error.source })
  }
  return sweep.report
}

/** What becomes of each content; the model is then as the pool is after it. */
export function predictDelete(
  pool: PoolModel,
  holder: Holder,
  contents: readonly number[]
): ReadonlyMap<number, DeleteOutcome> {
  const outcomes = new Map<number, DeleteOutcome>(contents.map(content => [content, 'absent']))
  if (!pool.exists) return outcomes
  holder.flush(pool)
  holder.renew(pool)
  const judgement = new Judgement(holder, false)
  for (const content of contents) if (pool.isPinned(content)) outcomes.set(content, 'pinned')
  const marked = contents.filter(content => pool.entries.has(content) && !pool.isPinned(content))
  if (marked.length === 0) return outcomes
  const isUnknown = judgement.failsAtOnce() !== undefined || judgement.failsFor(marked) !== undefined
  let isLargeGone = false
  for (const content of marked) {
    if (isUnknown) outcomes.set(content, 'source-failed')
    else if (judgement.isLive(content)) outcomes.set(content, 'live')
    else {
      isLargeGone ||= pool.entries.get(content)?.tier === 'large'
      pool.take(content)
      outcomes.set(content, 'deleted')
    }
  }
  // Where bodies need not wait they are gone with the answer, and whatever else is due with them.
  if (isLargeGone && pool.trashDelayMs === 0) pool.drop()
  return outcomes
}

/** `why` without its times: those are the catalog's. */
export type WhyPrediction = Pick<Why, 'entry' | 'verdict'> & {
  readonly liveBy: readonly string[]
  readonly own: number
  readonly others: number
  readonly window: { readonly cancelled: boolean; readonly due: boolean } | undefined
}

export function predictWhy(pool: PoolModel, holder: Holder, content: number): WhyPrediction {
  holder.flush(pool)
  const entry = pool.entries.get(content)
  const row = pool.window.get(content)
  const pinned = [...pool.pins].flatMap(([owner, rows]) => {
    const expiresAtMs = rows.get(content)
    return expiresAtMs !== undefined && pool.isPinRowAlive(expiresAtMs) ? [owner] : []
  })
  const liveBy = entry === undefined ? [] : new Judgement(holder, false).namesFor(content)
  const found = {
    entry: entry && { length: pool.lengthOf(content), tier: entry.tier },
    liveBy: [...(liveBy ?? [])].sort(),
    own: pinned.filter(owner => owner === holder).length,
    others: pinned.filter(owner => owner !== holder).length,
    window: row && { cancelled: row.isCancelled, due: pool.isDue(row) }
  }
  return { ...found, verdict: verdictOf(pool, holder, found, liveBy === undefined) }
}

function verdictOf(
  pool: PoolModel,
  holder: Holder,
  { entry, liveBy, own, others, window }: Omit<WhyPrediction, 'verdict'>,
  hasFailed: boolean
): Why['verdict'] {
  if (entry === undefined) return 'absent'
  if (own + others > 0) return 'pinned'
  if (hasFailed) return 'source-failed'
  if (liveBy.length > 0) return 'live'
  if (holder.sources.length === 0) return 'no-sources'
  if (pool.form === 'inline') return 'would-be-deleted'
  if (window === undefined || window.cancelled) return 'would-be-staged'
  return window.due ? 'would-be-deleted' : 'waiting'
}
