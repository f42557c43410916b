/** What a sweep says of itself. Counts are exact and add up, also of a sweep that was cut short. */
import type { FailedDrop } from '../drop.js'

export type SweepAbort = 'NoLivenessSources' | 'ProtectFailed' | 'SweeperLock' | 'LeaseLost' | 'Cancelled'

export interface SweepReport {
  /** Why the sweep stopped early; absent after a complete one. */
  aborted?: SweepAbort
  /** The error behind `ProtectFailed`, or the reason of the signal behind `Cancelled`. */
  cause?: unknown
  /** The name of the liveness source behind `ProtectFailed`. */
  source?: string
  /** Entries looked at for staging: `live + candidatesStaged + alreadyStaged`. */
  scanned: number
  live: number
  alreadyStaged: number
  candidatesStaged: number
  /** Entries removed. */
  deleted: number
  /** Candidates that turned out to be protected. */
  cancelledByArbitration: number
  /** Bytes really gone from the media in this sweep. */
  bytesDeleted: number
  /** Bodies that could not be dropped; their entries stay gone, and the drop is tried again later. */
  failed: FailedDrop[]
  pinsReaped: number
  stagesReclaimed: number
  durationMs: number
}

export interface SweepOptions {
  readonly signal?: AbortSignal
  readonly onProgress?: (progress: SweepProgress) => void
  /** Changes nothing and reports what a staging would take. Default false. */
  readonly dryRun?: boolean
  /** Most entries to remove in this sweep. */
  readonly maxDeletes?: number
  /** Time after which no new page is begun, in milliseconds. */
  readonly maxDurationMs?: number
}

export interface SweepProgress {
  readonly step: string
  readonly scanned: number
  readonly staged: number
  readonly deleted: number
}

export function emptyReport(): SweepReport {
  return {
    scanned: 0,
    live: 0,
    alreadyStaged: 0,
    candidatesStaged: 0,
    deleted: 0,
    cancelledByArbitration: 0,
    bytesDeleted: 0,
    failed: [],
    pinsReaped: 0,
    stagesReclaimed: 0,
    durationMs: 0
  }
}

/** Ends a sweep early; caught where the report is made. */
export class SweepStop extends Error {
  readonly aborted: SweepAbort
  readonly source: string | undefined

  constructor(aborted: SweepAbort, cause?: unknown, source?: string) {
    super(aborted, { cause })
    this.aborted = aborted
    this.source = source
  }
}
