/**
 * What a transaction of the durable form does with rows, one small rule to a method. A planted bug overrides one of them, or of
 * `rules.ts`, and leaves the rest exact. Clause ids are those of the engine contract.
 */
import {
  type BlobKey,
  type DeleteMark,
  EngineFault,
  type Entry,
  type Locator,
  type PinId,
  type PinRow,
  type Place,
  PROTOCOL_VERSION,
  type PublishedBytes,
  type RenewRequest,
  type StageId
} from '@alkblobs/core/engine'
import type { DurableMedium, EntryRow, MarkRow } from './medium.js'

/** What a pin asks for. */
export interface PinWanted {
  readonly row: PinRow
  readonly ttlMs: number
}

export class Rows {
  readonly medium: DurableMedium
  /** Whose calls these are: for rules that are broken. */
  readonly who: string

  constructor(medium: DurableMedium, who = '') {
    this.medium = medium
    this.who = who
  }

  /** The catalog's clock (ENG-6): that of the machine all instances share, or of the server. */
  now(): number {
    return Date.now() + this.medium.clockAheadMs
  }

  /** The contract stamp (ENG-PUBLISH-1, ENG-REMOVE-1). */
  checkStamp(): void {
    const { record } = this.medium
    if (record === undefined) throw new EngineFault('foreign', 'no pool yet')
    if (record.protocol > PROTOCOL_VERSION) throw new EngineFault('newer', `the pool has protocol ${record.protocol}`)
  }

  /** ENG-PUBLISH-6: the pin, if one is asked for, and the end of every doubt about the key. */
  protect(key: BlobKey, pin: PinWanted | undefined): void {
    if (pin !== undefined) this.writePin(key, pin)
    this.cancel(key)
  }

  /** The highest generation stays and the expiry never moves back. */
  writePin(key: BlobKey, { row, ttlMs }: PinWanted): void {
    const owners = this.medium.pins.get(key) ?? new Map()
    const there = owners.get(row.owner)
    owners.set(row.owner, {
      generation: Math.max(row.generation, there?.generation ?? 0),
      expiresAt: Math.max(this.now() + ttlMs, there?.expiresAt ?? 0)
    })
    this.medium.pins.set(key, owners)
  }

  cancel(key: BlobKey): void {
    this.cancelCandidate(key)
    this.cancelMarks(key)
  }

  cancelCandidate(key: BlobKey): void {
    const row = this.medium.window.get(key)
    if (row !== undefined) this.medium.window.set(key, { ...row, cancelled: true })
  }

  cancelMarks(key: BlobKey): void {
    const marks = this.medium.marks.get(key)
    for (const [mark, row] of marks ?? []) marks?.set(mark, { ...row, cancelled: true })
  }

  isPinned(key: BlobKey): boolean {
    return this.medium.pinnedBy(key, this.now()).length > 0
  }

  /** ENG-STAGE-2 */
  isStaged(stage: StageId): boolean {
    return (this.medium.stages.get(stage) ?? 0) > this.now()
  }

  /** ENG-RENEW-1 to 3 */
  renewPin({ key, pin }: PinId, { pinTtlMs, revive }: RenewRequest): boolean {
    const owners = this.medium.pins.get(key)
    const row = owners?.get(pin.owner)
    if (owners === undefined || row === undefined || row.generation < pin.generation) return false
    const isExpired = row.expiresAt <= this.now()
    if (isExpired && !revive) return false
    owners.set(pin.owner, { ...row, expiresAt: Math.max(row.expiresAt, this.now() + pinTtlMs) })
    if (isExpired) this.revived(key)
    return true
  }

  /** While the row was expired the key may have been staged or marked as unprotected (ENG-RENEW-3). */
  revived(key: BlobKey): void {
    this.cancel(key)
  }

  renewStage(stage: StageId, ttlMs: number): boolean {
    if (!this.isStaged(stage)) return false
    this.medium.stages.set(stage, Math.max(this.medium.stages.get(stage) ?? 0, this.now() + ttlMs))
    return true
  }

  /** ENG-RELEASE-1 */
  releasePin({ key, pin }: PinId): void {
    const row = this.medium.pins.get(key)?.get(pin.owner)
    if (row !== undefined && row.generation <= pin.generation) this.endPin(key, pin.owner)
  }

  endPin(key: BlobKey, owner: PinRow['owner']): void {
    const owners = this.medium.pins.get(key)
    owners?.delete(owner)
    if (owners?.size === 0) this.medium.pins.delete(key)
  }

  takeMark(key: BlobKey, mark: DeleteMark): MarkRow | undefined {
    const marks = this.medium.marks.get(key)
    const row = marks?.get(mark)
    marks?.delete(mark)
    if (marks?.size === 0) this.medium.marks.delete(key)
    return row
  }

  /** A name goes into trash; one that is there keeps its row. */
  toTrash(what: Locator | StageId, entry?: { key: BlobKey; length: number }, delayMs = 0): void {
    const { trash } = this.medium
    if (trash.has(what)) return
    trash.set(what, { key: entry?.key, length: entry?.length, attempts: 0, notBefore: this.now() + delayMs })
  }

  /** Moves a stage to trash; says whether its row was there (ENG-STAGE-3). */
  trashStage(stage: StageId): boolean {
    const wasThere = this.medium.stages.delete(stage)
    if (wasThere) this.toTrash(stage)
    return wasThere
  }

  /** The entry of new bytes, whose stage row ends (ENG-PUBLISH-3). */
  place(key: BlobKey, length: number, bytes: Exclude<PublishedBytes, { kind: 'none' }>): Entry {
    const row = rowOf(key, length, bytes)
    if (bytes.kind === 'staged') this.medium.stages.delete(bytes.stage)
    this.medium.entries.set(key, row)
    return row.entry
  }

  /** The end of where an entry's bytes lie: a large body goes by way of trash. */
  endBytes({ key, length, place }: Entry, trashDelayMs: number): void {
    if (place.tier === 'large') this.toTrash(place.locator, { key, length }, trashDelayMs)
  }

  /** ENG-REMOVE-3 */
  take({ entry }: EntryRow, trashDelayMs: number): void {
    this.endBytes(entry, trashDelayMs)
    this.medium.entries.delete(entry.key)
    this.medium.pins.delete(entry.key)
  }
}

function rowOf(key: BlobKey, length: number, bytes: Exclude<PublishedBytes, { kind: 'none' }>): EntryRow {
  if (bytes.kind === 'staged') return { entry: { key, length, place: { tier: 'large', locator: bytes.locator } } }
  const body = new Uint8Array(bytes.body)
  return { entry: { key, length, place: { tier: 'kv', length: body.length } }, body }
}

export function samePlace(one: Place, other: Place): boolean {
  if (one.tier === 'kv') return other.tier === 'kv' && one.length === other.length
  return other.tier === 'large' && one.locator === other.locator
}
