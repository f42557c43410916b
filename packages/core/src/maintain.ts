/** Maintenance: reclaims what the dead left behind. Needs no liveness source, since nothing it takes is an entry. */
import { dropTrash, type FailedDrop, nothingDropped } from './drop.js'
import { SCAN_EVERY_MAINTENANCE } from './limits.js'
import { orphansOf } from './orphans.js'
import type { Pool } from './pool.js'

export interface MaintenanceReport {
  /** Why it stopped early; absent after a complete run. */
  aborted?: 'SweeperLock' | 'LeaseLost' | 'Cancelled'
  pinsReaped: number
  stagesReclaimed: number
  /** Bodies dropped, and the bytes of those that had been published. */
  dropped: number
  bytesDropped: number
  /** Bodies nothing knew, now on their way out. Looked for by every 16th run, or when asked for. */
  orphans: number
  failed: FailedDrop[]
}

export interface MaintainOptions {
  readonly signal?: AbortSignal
  /** Looks through the body store for bodies nothing knows. Default: every 16th run of this store. */
  readonly scan?: boolean
}

export class Maintenance {
  readonly #pool: Pool
  #runs = 0

  constructor(pool: Pool) {
    this.#pool = pool
  }

  async run(options: MaintainOptions, closing: AbortSignal): Promise<MaintenanceReport> {
    const pool = this.#pool
    const report: MaintenanceReport = {
      pinsReaped: 0,
      stagesReclaimed: 0,
      dropped: 0,
      bytesDropped: 0,
      orphans: 0,
      failed: []
    }
    if (!(await pool.exists())) return report
    await pool.establish()
    const lease = await pool.lease()
    if (lease === undefined) return { ...report, aborted: 'SweeperLock' }
    const mayGoOn = () => {
      if (lease.lost.aborted) report.aborted = 'LeaseLost'
      else if (options.signal?.aborted === true || closing.aborted) report.aborted = 'Cancelled'
      return report.aborted === undefined
    }
    try {
      const { pinsReaped, stagesTrashed } = await pool.catalog.maintain(lease)
      report.pinsReaped = pinsReaped
      report.stagesReclaimed = stagesTrashed
      if (this.#isScanDue(options)) await this.#reclaimOrphans(report, mayGoOn)
      const dropped = nothingDropped()
      await dropTrash(pool, dropped, mayGoOn)
      return { ...report, dropped: dropped.count, bytesDropped: dropped.bytes, failed: dropped.failed }
    } finally {
      await pool.catalog.releaseLease(lease)
    }
  }

  #isScanDue({ scan }: MaintainOptions): boolean {
    this.#runs++
    return scan ?? this.#runs % SCAN_EVERY_MAINTENANCE === 0
  }

  async #reclaimOrphans(report: MaintenanceReport, mayGoOn: () => boolean): Promise<void> {
    for await (const _ of orphansOf(this.#pool, true)) {
      report.orphans++
      if (!mayGoOn()) return
    }
  }
}
