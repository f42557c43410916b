/** One sweep under way: what its steps share, and the one place that decides whether the next step may begin. */
import type { Lease } from '../engine.js'
import type { Pool } from '../pool.js'
import type { LiveKeys } from './liveness.js'
import { type SweepOptions, type SweepReport, SweepStop } from './report.js'

interface SweepRunParts {
  readonly pool: Pool
  /** None for a dry run, which has no effect that it would have to guard. */
  readonly lease: Lease | undefined
  readonly live: LiveKeys
  readonly report: SweepReport
  readonly options: SweepOptions
  /** The caller's signal and the store's closing. */
  readonly signals: readonly AbortSignal[]
  readonly startedMs: number
}

export class SweepRun {
  readonly pool: Pool
  readonly lease: Lease | undefined
  /** What the sources said, asked after the lease was taken. */
  readonly live: LiveKeys
  readonly report: SweepReport
  readonly options: SweepOptions
  readonly #signals: readonly AbortSignal[]
  readonly #startedMs: number

  constructor(parts: SweepRunParts) {
    this.pool = parts.pool
    this.lease = parts.lease
    this.live = parts.live
    this.report = parts.report
    this.options = parts.options
    this.#signals = parts.signals
    this.#startedMs = parts.startedMs
  }

  /** The lease, for a step that has effects. */
  get held(): Lease {
    if (this.lease === undefined) throw new SweepStop('LeaseLost')
    return this.lease
  }

  /** Asked before every effect. @throws SweepStop when the lease is in doubt or the caller has had enough. */
  assertGoing(): void {
    if (this.lease?.lost.aborted === true) throw new SweepStop('LeaseLost', this.lease.lost.reason)
    const cancelled = this.#signals.find(signal => signal.aborted)
    if (cancelled !== undefined) throw new SweepStop('Cancelled', cancelled.reason)
  }

  /** Whether a bounded sweep has time for another page. */
  get hasTime(): boolean {
    const { maxDurationMs } = this.options
    return maxDurationMs === undefined || performance.now() - this.#startedMs < maxDurationMs
  }

  /** How many entries this sweep may still remove. */
  get deletesLeft(): number {
    return (this.options.maxDeletes ?? Number.POSITIVE_INFINITY) - this.report.deleted
  }

  progress(step: string): void {
    const { scanned, candidatesStaged, deleted } = this.report
    this.options.onProgress?.({ step, scanned, staged: candidatesStaged, deleted })
  }
}
