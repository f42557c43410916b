/**
 * A catalog as plain data: what every method answers, and what it leaves behind. Keys, stages and owners are named by numbers.
 * Lives are either an hour or over when they begin, so no clock is asked.
 */
import type { DeleteMark, Locator, PinRow, Place, StageId } from '@alkblobs/core/engine'

interface PinModel {
  generation: number
  isAlive: boolean
}

export interface MarkRow {
  readonly key: number
  isCancelled: boolean
}

export interface TrashRow {
  readonly key: number | undefined
  readonly length: number | undefined
  attempts: number
  isDue: boolean
}

export interface EntryRow {
  readonly length: number
  readonly place: Place
}

export class CatalogPool {
  readonly form: 'inline' | 'durable'
  /** 0, or an hour. */
  windowDelayMs: number
  readonly entries = new Map<number, EntryRow>()
  /** By key: whether a put or pin has cancelled the row. Rows are as old as the delay they were staged with is short. */
  readonly window = new Map<number, { isCancelled: boolean; readonly delayMs: number }>()
  readonly marks = new Map<DeleteMark, MarkRow>()
  readonly pins = new Map<number, Map<string, PinModel>>()
  readonly stages = new Map<number, boolean>()
  /** By the name of a body: a locator or a stage id. */
  readonly trash = new Map<Locator | StageId, TrashRow>()
  /** Keys that the sweep under way must leave alone; `undefined` while nobody sweeps. */
  epoch: Set<number> | undefined

  constructor(form: 'inline' | 'durable', windowDelayMs: number) {
    this.form = form
    this.windowDelayMs = windowDelayMs
  }

  isPinned(key: number): boolean {
    return [...(this.pins.get(key)?.values() ?? [])].some(({ isAlive }) => isAlive)
  }

  /** What is protected from a sweep under this lease, or from a look without one. */
  isProtected(key: number, hasLease: boolean): boolean {
    return this.isPinned(key) || (hasLease && this.form === 'inline' && this.epoch?.has(key) === true)
  }

  isDue(key: number): boolean {
    const row = this.window.get(key)
    if (row === undefined) return false
    return this.form === 'inline' || row.isCancelled || Math.max(row.delayMs, this.windowDelayMs) === 0
  }

  protect(key: number, pin?: { row: PinRow; isAlive: boolean }): void {
    this.cancel(key)
    this.epoch?.add(key)
    if (pin === undefined) return
    const owners = this.pins.get(key) ?? new Map<string, PinModel>()
    const found = owners.get(pin.row.owner)
    owners.set(pin.row.owner, {
      generation: Math.max(pin.row.generation, found?.generation ?? 0),
      // In memory pins do not expire: their holder cannot outlive them.
      isAlive: this.form === 'inline' || pin.isAlive || found?.isAlive === true
    })
    this.pins.set(key, owners)
  }

  cancel(key: number): void {
    const row = this.window.get(key)
    if (row !== undefined) row.isCancelled = true
    for (const mark of this.marks.values()) if (mark.key === key) mark.isCancelled = true
  }

  discard(what: Locator | StageId, row: Partial<TrashRow>): void {
    if (this.trash.has(what)) return
    this.trash.set(what, { key: row.key, length: row.length, attempts: 0, isDue: row.isDue ?? true })
  }

  take(key: number, isDueAtOnce: boolean): void {
    const { place, length } = this.entries.get(key) as EntryRow
    this.entries.delete(key)
    this.pins.delete(key)
    if (place.tier === 'large') this.discard(place.locator, { key, length, isDue: isDueAtOnce })
  }

  unpin(key: number, owner: string): void {
    this.pins.get(key)?.delete(owner)
  }

  /** Every pin row: key, owner, and the row. */
  *pinRows(): Generator<[number, string, PinModel]> {
    for (const [key, owners] of this.pins) for (const [owner, row] of owners) yield [key, owner, row]
  }
}

export function isSamePlace(one: Place, other: Place): boolean {
  if (one.tier === 'kv') return other.tier === 'kv' && one.length === other.length
  return other.tier === 'large' && one.locator === other.locator
}
