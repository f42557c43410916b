/**
 * The pool as plain data: what a store promises, without a medium, a transaction or a clock of its own. Contents are named by
 * their numbers, holders by theirs; time passes only when a command says so.
 */
import type { StoreMode } from '@alkblobs/core'
import type { ModelContent } from './contents.js'
import type { Holder } from './holder.js'

/** Lives of rows in milliseconds, as the store has them unless told otherwise. */
export const PIN_TTL_MS = 10 * 60 * 1000
export const STAGE_TTL_MS = 15 * 60 * 1000

export interface EntryModel {
  tier: 'kv' | 'large'
  /** Bytes really there; `undefined` when the body is gone. */
  held: number | undefined
  /** Whether the bytes that are there are others. */
  isFlipped: boolean
}

export interface RowModel {
  readonly stagedAtMs: number
  readonly delayMs: number
  isCancelled: boolean
}

interface TrashModel {
  readonly content: number | undefined
  /** Length of a body that was published; 0 for one that never was. */
  readonly bytes: number
  readonly dueAtMs: number
  /** What lies there: a sealed body, half of one, or nothing any more, which is dropped all the same. */
  readonly body: 'sealed' | 'half' | 'gone'
}

/** A writer that has written and neither committed nor discarded. */
export interface WriterModel {
  readonly content: number
  readonly holder: Holder
  /** When its stage expires; `undefined` while its bytes are in memory alone, or when the stage has been reclaimed. */
  stageExpiresAtMs: number | undefined
  readonly isSpilled: boolean
  isOver: boolean
}

export interface PoolSetup {
  readonly form: 'inline' | 'durable'
  readonly mode: StoreMode
  readonly windowDelayMs: number
  readonly trashDelayMs: number
  /** Small entries have a catalog in memory, large ones a durable one. */
  readonly hasTwoCatalogs: boolean
  /** Whether an expired pin row that is still there lives on when it is renewed: outside a fleet it does. */
  readonly revives: boolean
}

export class PoolModel {
  readonly contents: readonly ModelContent[]
  readonly form: 'inline' | 'durable'
  readonly mode: StoreMode
  windowDelayMs: number
  readonly trashDelayMs: number
  readonly hasTwoCatalogs: boolean
  readonly revives: boolean
  nowMs = 0
  /** Whether there is a pool at all: nothing is made before the first write. */
  exists = false
  readonly entries = new Map<number, EntryModel>()
  readonly window = new Map<number, RowModel>()
  /** Of each holder, dead ones included: content to expiry. */
  readonly pins = new Map<Holder, Map<number, number>>()
  readonly writers: WriterModel[] = []
  trash: TrashModel[] = []
  /** The open stores. */
  readonly holders: Holder[] = []

  constructor(contents: readonly ModelContent[], setup: PoolSetup) {
    this.contents = contents
    this.form = setup.form
    this.mode = setup.mode
    this.hasTwoCatalogs = setup.hasTwoCatalogs
    this.windowDelayMs = setup.windowDelayMs
    this.revives = setup.revives
    // What dies with its process cannot wait.
    this.trashDelayMs = setup.form === 'inline' ? 0 : setup.trashDelayMs
  }

  get hasBodies(): boolean {
    return this.mode === 'dual-tier'
  }

  lengthOf(content: number): number {
    return (this.contents[content] as ModelContent).bytes.length
  }

  /** The contents that have an entry, in the order of their keys. */
  present(): readonly number[] {
    const key = (content: number) => this.contents[content]?.key ?? ''
    return [...this.entries.keys()].sort((one, other) => (key(one) < key(other) ? -1 : 1))
  }

  isDamaged(content: number): boolean {
    const entry = this.entries.get(content)
    return entry !== undefined && (entry.isFlipped || entry.held !== this.lengthOf(content))
  }

  /** Whether this store accepts that length. */
  accepts(holder: Holder, length: number): boolean {
    return this.mode !== 'kv-only' || length <= holder.threshold
  }

  isPinRowAlive(expiresAtMs: number): boolean {
    return this.form === 'inline' || expiresAtMs > this.nowMs
  }

  isPinned(content: number): boolean {
    return [...this.pins.values()].some(rows => {
      const expiresAtMs = rows.get(content)
      return expiresAtMs !== undefined && this.isPinRowAlive(expiresAtMs)
    })
  }

  isDue(row: RowModel): boolean {
    if (this.form === 'inline' || row.isCancelled) return true
    return row.stagedAtMs + Math.max(row.delayMs, this.windowDelayMs) <= this.nowMs
  }

  /** What every put and every pin does in the transaction that makes or finds the entry. */
  protect(content: number, holder: Holder | undefined): void {
    if (holder !== undefined) {
      const rows = this.pins.get(holder) ?? new Map<number, number>()
      rows.set(content, Math.max(rows.get(content) ?? 0, this.nowMs + PIN_TTL_MS))
      this.pins.set(holder, rows)
    }
    this.cancel(content)
  }

  cancel(content: number): void {
    const row = this.window.get(content)
    if (row !== undefined) row.isCancelled = true
  }

  /** Ends what dies with the process of a holder: in memory a pin ends with the store that took it, however that ended. */
  die(holder: Holder): void {
    const rows = this.pins.get(holder)
    if (rows === undefined) return
    for (const content of rows.keys()) if (this.#isInMemory(content)) rows.delete(content)
  }

  #isInMemory(content: number): boolean {
    return this.form === 'inline' || (this.hasTwoCatalogs && this.entries.get(content)?.tier === 'kv')
  }

  /** Stores a content; answers whether the entry's bytes are those of this put. */
  publish(content: number, holder: Holder, { pin, verify }: { pin: boolean; verify: boolean }): boolean {
    const length = this.lengthOf(content)
    const found = this.entries.get(content)
    const isHealed = found !== undefined && (found.held !== length || (verify && found.isFlipped))
    if (found === undefined || isHealed) {
      if (found?.tier === 'large') {
        this.discard(content, bodyOf(found))
        // Where bodies need not wait, the broken one is gone before the put answers.
        if (this.trashDelayMs === 0) this.drop()
      }
      // What memory beside a durable catalog holds is healed there, whatever the threshold is by now.
      const isKept = this.hasTwoCatalogs && found?.tier === 'kv'
      const tier = this.hasBodies && length > holder.threshold && !isKept ? 'large' : 'kv'
      this.entries.set(content, { tier, held: length, isFlipped: false })
    }
    this.protect(content, pin ? holder : undefined)
    return found === undefined || isHealed
  }

  /** Takes an entry away that arbitration let go; answers the bytes that went with it at once. */
  take(content: number): number {
    const entry = this.entries.get(content) as EntryModel
    this.entries.delete(content)
    for (const rows of this.pins.values()) rows.delete(content)
    if (entry.tier === 'kv') return entry.held ?? 0
    this.discard(content, bodyOf(entry))
    return 0
  }

  discard(content: number | undefined, body: TrashModel['body']): void {
    const bytes = content === undefined ? 0 : this.lengthOf(content)
    const delayMs = content === undefined ? 0 : this.trashDelayMs
    this.trash.push({ content, bytes, dueAtMs: this.nowMs + delayMs, body })
  }

  /** Drops what may be dropped. */
  drop(): { count: number; bytes: number } {
    if (!this.hasBodies) return { count: 0, bytes: 0 }
    const due = this.trash.filter(({ dueAtMs }) => dueAtMs <= this.nowMs)
    this.trash = this.trash.filter(({ dueAtMs }) => dueAtMs > this.nowMs)
    return { count: due.length, bytes: due.reduce((sum, { bytes }) => sum + bytes, 0) }
  }

  /** Ends expired pins, and moves expired stages to trash. */
  maintain(): { pinsReaped: number; stagesReclaimed: number } {
    let pinsReaped = 0
    for (const rows of this.pins.values()) {
      for (const [content, expiresAtMs] of rows) {
        if (this.isPinRowAlive(expiresAtMs)) continue
        rows.delete(content)
        pinsReaped++
      }
    }
    const expired = this.stages().filter(({ stageExpiresAtMs }) => (stageExpiresAtMs as number) <= this.nowMs)
    for (const writer of expired) {
      writer.stageExpiresAtMs = undefined
      this.discard(undefined, 'half')
    }
    return { pinsReaped, stagesReclaimed: expired.length }
  }

  /** The writers that have a stage row, dead ones included. */
  stages(): readonly WriterModel[] {
    return this.writers.filter(({ stageExpiresAtMs }) => stageExpiresAtMs !== undefined)
  }

  /** Sealed bodies on the large medium, whoever owns them. */
  bodies(): number {
    const owned = [...this.entries.values()].filter(({ tier, held }) => tier === 'large' && held !== undefined)
    return owned.length + this.trash.filter(({ body }) => body === 'sealed').length
  }

  /** The rows of all pins that are in force. */
  pinRows(): number {
    let count = 0
    for (const rows of this.pins.values())
      for (const expiresAtMs of rows.values()) if (this.isPinRowAlive(expiresAtMs)) count++
    return count
  }
}

function bodyOf({ held }: EntryModel): TrashModel['body'] {
  return held === undefined ? 'gone' : 'sealed'
}
