/**
 * What a durable pool keeps, as maps: the tables of engine-sqlite. Rows stay when an instance is gone; nothing else does.
 *
 *   entries   key -> entry, inline body           stages   stage -> expiry
 *   pins      key -> owner -> generation, expiry  trash    name -> what is known of it, not to be dropped before
 *   window    key -> row                          marks    key -> mark -> when, cancelled
 *   record    what the pool is                    lease    who may sweep, and how many have held it
 */
import type { BlobKey, DeleteMark, Entry, Locator, Owner, PoolRecord, StageId } from '@alkblobs/core/engine'

export interface EntryRow {
  readonly entry: Entry
  readonly body?: Uint8Array
}
export interface PinRowKept {
  readonly generation: number
  readonly expiresAt: number
}
export interface WindowRow {
  readonly stagedAt: number
  readonly delayMs: number
  readonly cancelled: boolean
}
export interface MarkRow {
  readonly markedAt: number
  readonly cancelled: boolean
}
export interface TrashRow {
  readonly key: BlobKey | undefined
  readonly length: number | undefined
  readonly attempts: number
  readonly notBefore: number
}

export class DurableMedium {
  readonly entries = new Map<BlobKey, EntryRow>()
  readonly pins = new Map<BlobKey, Map<Owner, PinRowKept>>()
  readonly window = new Map<BlobKey, WindowRow>()
  readonly marks = new Map<BlobKey, Map<DeleteMark, MarkRow>>()
  readonly stages = new Map<StageId, number>()
  readonly trash = new Map<Locator | StageId, TrashRow>()
  record: PoolRecord | undefined
  /** The lock of the lease's holder, by the number it took; `undefined` while it is free. */
  lock: number | undefined
  /** Leases ever taken: the fence. */
  leases = 0
  /** How far the catalog's clock is ahead of those of its instances. */
  readonly clockAheadMs: number

  constructor(clockAheadMs = 0) {
    this.clockAheadMs = clockAheadMs
  }

  /** A copy that shares nothing that changes: rows are replaced, never changed. */
  copy(): DurableMedium {
    const copy = new DurableMedium(this.clockAheadMs)
    copyRows(this.entries, copy.entries)
    copyRows(this.window, copy.window)
    copyRows(this.stages, copy.stages)
    copyRows(this.trash, copy.trash)
    for (const [key, owners] of this.pins) copy.pins.set(key, new Map(owners))
    for (const [key, marks] of this.marks) copy.marks.set(key, new Map(marks))
    copy.record = this.record
    copy.lock = this.lock
    copy.leases = this.leases
    return copy
  }

  /** The owners of unexpired pins. */
  pinnedBy(key: BlobKey, nowMs: number): Owner[] {
    return [...(this.pins.get(key) ?? [])].flatMap(([owner, { expiresAt }]) => (expiresAt > nowMs ? [owner] : []))
  }

  /** All of it in one text, the same for equal contents. */
  dump(): string {
    const { entries, pins, window, marks, stages, trash, record, lock, leases } = this
    return JSON.stringify([
      rowsOf(entries, ({ entry, body }) => [entry.length, entry.place, body?.length]),
      rowsOf(pins, owners => rowsOf(owners)),
      rowsOf(window),
      rowsOf(marks, each => rowsOf(each)),
      rowsOf(stages),
      rowsOf(trash),
      [record?.bodiesClaimed, record?.windowDelayMs, lock, leases]
    ])
  }
}

function copyRows<K, V>(from: ReadonlyMap<K, V>, to: Map<K, V>): void {
  for (const [key, row] of from) to.set(key, row)
}

export function rowsOf<K extends string, V>(
  rows: ReadonlyMap<K, V>,
  shown: (row: V) => unknown = row => row
): [K, unknown][] {
  return [...rows].map(([key, row]): [K, unknown] => [key, shown(row)]).sort(([a], [b]) => (a < b ? -1 : 1))
}

/** A page of rows in the order of their keys, after one of them (exclusive). */
export function rowsAfter<K extends string, V>(
  rows: ReadonlyMap<K, V>,
  after: string | undefined,
  limit: number
): [K, V][] {
  return [...rows]
    .filter(([key]) => after === undefined || key > after)
    .sort(([one], [other]) => (one < other ? -1 : 1))
    .slice(0, limit)
}
