/** The decisions of the durable form: what a publication, a pin, a staging, a mark and a removal come to. */
import {
  type BlobKey,
  type DeleteMark,
  EngineFault,
  type Entry,
  type Found,
  type Lease,
  type Maintenance,
  type PinRequest,
  type Publication,
  type PublishOutcome,
  type Removal,
  type RemoveOutcome,
  type StageId
} from '@alkblobs/core/engine'
import { HeldLease } from './lease.js'
import type { WindowRow } from './medium.js'
import { Rows, samePlace } from './rows.js'

/** A delete that is still asking its sources after a day is not one. */
const MARK_TTL_MS = 24 * 60 * 60 * 1000

export class Rules extends Rows {
  publish(item: Publication): PublishOutcome {
    const { key, length, bytes, healing } = item
    if (bytes.kind === 'staged' && !this.isPublishable(bytes.stage)) return { outcome: 'stage-lost' }
    const found = this.medium.entries.get(key)?.entry
    if (found === undefined && bytes.kind === 'none') return { outcome: 'absent' }
    const heals = found !== undefined && healing !== undefined && samePlace(found.place, healing)
    if (bytes.kind === 'none' || (found !== undefined && !heals)) {
      this.existed(item)
      return { outcome: 'existed', entry: found as Entry }
    }
    if (found !== undefined) this.replaces(found, item.trashDelayMs)
    const entry = this.place(key, length, bytes)
    this.protect(key, item.pin)
    return { outcome: heals ? 'healed' : 'created', entry }
  }

  /** ENG-PUBLISH-5 */
  replaces(entry: Entry, trashDelayMs: number): void {
    this.endBytes(entry, trashDelayMs)
  }

  /** ENG-PUBLISH-2 */
  isPublishable(stage: StageId): boolean {
    return this.isStaged(stage)
  }

  /** ENG-PUBLISH-4 and -6: the entry and the stage stay as they are, the key is protected. */
  existed({ key, pin }: Publication): void {
    this.protect(key, pin)
  }

  /** ENG-PIN-1 */
  pin({ key, pin, ttlMs }: PinRequest): Entry | undefined {
    const entry = this.medium.entries.get(key)?.entry
    if (entry !== undefined) this.protect(key, { row: pin, ttlMs })
    return entry
  }

  /** ENG-WINDOW-1 */
  stageCandidate(key: BlobKey): boolean {
    const { entries, window } = this.medium
    if (!entries.has(key) || window.has(key) || this.isPinnedAtStaging(key)) return false
    window.set(key, { stagedAt: this.now(), delayMs: this.delayNow, cancelled: false })
    return true
  }

  /** The look at pins in the very transaction that stages. */
  isPinnedAtStaging(key: BlobKey): boolean {
    return this.isPinned(key)
  }

  /** ENG-WINDOW-2 */
  isDue({ stagedAt, delayMs, cancelled }: WindowRow): boolean {
    return cancelled || stagedAt + Math.max(delayMs, this.delayNow) <= this.now()
  }

  get delayNow(): number {
    return this.medium.record?.windowDelayMs ?? 0
  }

  /** ENG-MARK-1 */
  mark(key: BlobKey, mark: DeleteMark): { mark: DeleteMark; entry: Entry } | 'pinned' | 'absent' {
    if (this.isPinnedAtMark(key)) return 'pinned'
    const entry = this.medium.entries.get(key)?.entry
    if (entry === undefined) return 'absent'
    const marks = this.medium.marks.get(key) ?? new Map()
    this.medium.marks.set(key, marks.set(mark, { markedAt: this.now(), cancelled: false }))
    return { mark, entry }
  }

  isPinnedAtMark(key: BlobKey): boolean {
    return this.isPinned(key)
  }

  /** ENG-LEASE-1 */
  isLeaseFree(): boolean {
    return this.medium.lock === undefined
  }

  /** For every transaction of a sweep. @throws EngineFault `conflict` if the lease is not one of these, or not held. */
  checkLease(lease: Lease | undefined): void {
    if (!(lease instanceof HeldLease)) throw new EngineFault('conflict', 'lease lost')
    lease.check()
  }

  /** ENG-REMOVE-2 to -5 */
  remove(item: Removal, trashDelayMs: number): RemoveOutcome {
    const { key } = item
    const found = this.medium.entries.get(key)
    const row = this.endCandidacy(item)
    if (item.kind === 'marked' && (found === undefined || !this.liesAt(found.entry, item.at)))
      return { outcome: 'absent' }
    if (!this.isStanding(row)) return { outcome: 'cancelled' }
    if (found === undefined) return { outcome: 'deleted', entry: undefined }
    if (item.live || this.isPinnedAtRemoval(key)) return { outcome: 'cancelled' }
    this.take(found, trashDelayMs)
    return { outcome: 'deleted', entry: found.entry }
  }

  /** Ends the candidate's row or the mark, and neither for the other (ENG-REMOVE-6). */
  endCandidacy(item: Removal): { readonly cancelled: boolean } | undefined {
    if (item.kind === 'marked') return this.takeMark(item.key, item.mark)
    const row = this.medium.window.get(item.key)
    this.medium.window.delete(item.key)
    return row
  }

  /** Without its row nothing says that the key was staged or marked, so nothing says that it may go. */
  isStanding(row: { readonly cancelled: boolean } | undefined): boolean {
    return row !== undefined && !row.cancelled
  }

  liesAt(entry: Entry, at: Entry['place'] | undefined): boolean {
    return at === undefined || samePlace(entry.place, at)
  }

  /** The look at pins in the very transaction that removes. */
  isPinnedAtRemoval(key: BlobKey): boolean {
    return this.isPinned(key)
  }

  /** ENG-TRASH-3 */
  isKnown({ stage, sealed }: Found): boolean {
    const { stages, trash, entries } = this.medium
    if (stages.has(stage) || trash.has(stage)) return true
    if (sealed === undefined) return false
    const place = entries.get(sealed.key)?.entry.place
    return trash.has(sealed.locator) || (place?.tier === 'large' && place.locator === sealed.locator)
  }

  /** ENG-MAINTAIN-1 */
  maintain(): Maintenance {
    const now = this.now()
    const report = { pinsReaped: 0, stagesTrashed: 0 }
    for (const [key, owners] of this.medium.pins) {
      for (const [owner, { expiresAt }] of owners) {
        if (expiresAt > now) continue
        this.endPin(key, owner)
        report.pinsReaped++
      }
    }
    for (const stage of [...this.medium.stages.keys()]) {
      if (!this.isStaged(stage) && this.trashStage(stage)) report.stagesTrashed++
    }
    for (const [key, marks] of this.medium.marks) {
      for (const [mark, { markedAt }] of marks) if (markedAt <= now - MARK_TTL_MS) this.takeMark(key, mark)
    }
    return report
  }
}
