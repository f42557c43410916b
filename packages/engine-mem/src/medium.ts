/**
 * The memory of one pool: what a SQL engine keeps in tables, as maps.
 *
 *   entries   key -> length, place, inline body      stages   stage id -> expiry
 *   pins      key -> owner -> pin                    trash    locator or stage id -> what is known of it, droppable from when
 *   window    key -> row, oldest first               marks    key -> mark -> cancelled?
 *
 * Every method of the catalog works on it in one synchronous step, and that is all the transaction there is: nobody can
 * look in between.
 *
 * Memory alone runs the inline form: its pins need no expiry, because their holder dies with it. Beside a durable catalog it runs
 * the durable form, with everything that form has: pins expire unless they are renewed, rows of the window wait.
 */
import type {
  BlobKey,
  Call,
  Catalog,
  DeleteMark,
  Entry,
  Lease,
  Locator,
  Owner,
  PinRow,
  Place,
  PoolRecord,
  StageId
} from '@alkblobs/core/engine'
import { EngineFault, PROTOCOL_VERSION } from '@alkblobs/core/engine'
import { SortedMap } from './sorted-map.js'

declare const brand: unique symbol

/** The memory of one pool. Opaque: hand it to `mem({ medium })` of every store that shall share the pool. */
export interface MemMedium {
  readonly [brand]: 'MemMedium'
}

/** An entry as it is kept; `body` belongs to the pool and never leaves it but as a copy. */
export interface StoredEntry {
  readonly entry: Entry
  readonly body?: Uint8Array
}

export interface WindowRow {
  /** Rises with every row: the cursor of a walk through the window. */
  readonly sequence: number
  readonly stagedAt: number
  /** The window delay in force when it was staged. */
  readonly delayMs: number
  cancelled: boolean
}

export interface StoredPin {
  readonly generation: number
  /** Never, on the inline form. */
  readonly expiresAt: number
}

export interface MarkRow {
  cancelled: boolean
}

export interface TrashRow {
  readonly key: BlobKey | undefined
  readonly length: number | undefined
  readonly attempts: number
  readonly droppableAt: number
}

/** The lease in force, and on the inline form the epoch it opened: the keys that the sweep under it must leave alone. */
export interface HeldLease {
  readonly lease: Lease
  readonly epoch: Set<BlobKey> | undefined
}

export class Medium implements MemMedium {
  declare readonly [brand]: 'MemMedium'
  /** Inline for memory alone, durable beside a durable catalog; of the first store that opens it. */
  form: Catalog['form'] | undefined
  record: PoolRecord | undefined
  readonly entries = new SortedMap<BlobKey, StoredEntry>()
  readonly pins = new Map<BlobKey, Map<Owner, StoredPin>>()
  readonly window = new Map<BlobKey, WindowRow>()
  readonly marks = new Map<BlobKey, Map<DeleteMark, MarkRow>>()
  readonly stages = new Map<StageId, number>()
  readonly trash = new SortedMap<Locator | StageId, TrashRow>()
  held: HeldLease | undefined
  /** Window rows ever written: the next one's place in the queue. */
  rows = 0

  /** ENG-PUBLISH-6 and -7: what every put and every pin does in the very step that makes or finds the entry. */
  protect(key: BlobKey, pin: { readonly row: PinRow; readonly ttlMs: number } | undefined): void {
    if (pin !== undefined) {
      const owners = this.pins.get(key) ?? new Map<Owner, StoredPin>()
      owners.set(pin.row.owner, this.#renewed(owners.get(pin.row.owner), pin.row.generation, pin.ttlMs))
      this.pins.set(key, owners)
    }
    const row = this.window.get(key)
    if (row !== undefined) row.cancelled = true
    for (const mark of this.marks.get(key)?.values() ?? []) mark.cancelled = true
    this.held?.epoch?.add(key)
  }

  /** How long until a row may be executed, in milliseconds; on the inline form every row is due (ENG-WINDOW-2). */
  dueInMs(row: WindowRow): number {
    if (this.form === 'inline' || row.cancelled) return 0
    return Math.max(0, row.stagedAt + Math.max(row.delayMs, this.record?.windowDelayMs ?? 0) - now())
  }

  /** Moves the expiry of a pin that is there, never back. */
  renew(key: BlobKey, owner: Owner, ttlMs: number): void {
    const pin = this.pins.get(key)?.get(owner)
    if (pin !== undefined) this.pins.get(key)?.set(owner, this.#renewed(pin, pin.generation, ttlMs))
  }

  isPinned(key: BlobKey): boolean {
    for (const { expiresAt } of this.pins.get(key)?.values() ?? []) if (expiresAt > now()) return true
    return false
  }

  #renewed(pin: StoredPin | undefined, generation: number, ttlMs: number): StoredPin {
    const expiresAt = this.form === 'inline' ? Number.POSITIVE_INFINITY : now() + ttlMs
    return {
      generation: Math.max(generation, pin?.generation ?? generation),
      expiresAt: Math.max(expiresAt, pin?.expiresAt ?? expiresAt)
    }
  }

  unpin(key: BlobKey, owner: Owner): void {
    const owners = this.pins.get(key)
    owners?.delete(owner)
    if (owners?.size === 0) this.pins.delete(key)
  }

  unmark(key: BlobKey, mark: DeleteMark): void {
    const marks = this.marks.get(key)
    marks?.delete(mark)
    if (marks?.size === 0) this.marks.delete(key)
  }

  discard(what: Locator | StageId, known: { key?: BlobKey; length?: number } = {}, delayMs = 0): void {
    // What is in trash already stays as it is: it was trashed first.
    if (this.trash.has(what)) return
    const droppableAt = now() + delayMs
    this.trash.set(what, { key: known.key, length: known.length, attempts: 0, droppableAt })
  }

  /** The contract stamp: who does not know the protocol of this pool must not write to it (ENG-PUBLISH-1, ENG-REMOVE-1). */
  checkStamp(): PoolRecord {
    if (this.record === undefined) throw new EngineFault('foreign', 'this memory holds no pool yet')
    if (this.record.protocol > PROTOCOL_VERSION) {
      throw new EngineFault(
        'newer',
        `the pool has protocol ${this.record.protocol}, this version knows ${PROTOCOL_VERSION}`
      )
    }
    return this.record
  }

  /** The lease in force, if it is this one. @throws EngineFault `conflict` if not. */
  checkLease(lease: Lease | undefined): HeldLease {
    if (this.held === undefined || this.held.lease !== lease) {
      throw new EngineFault('conflict', 'the lease is not held (any more)')
    }
    return this.held
  }
}

/** Whether both name the same bytes. */
export function samePlace(one: Place, other: Place): boolean {
  return one.tier === 'kv'
    ? other.tier === 'kv' && one.length === other.length
    : other.tier === 'large' && one.locator === other.locator
}

/** The catalog's clock: it never runs backwards, and nobody else reads it. In milliseconds. */
export function now(): number {
  return performance.now()
}

/** Runs one method: at once and in one step, unless nobody waits for it any more (ENG-4). */
export async function atomic<Result>(call: Call, step: () => Result): Promise<Result> {
  call.signal?.throwIfAborted()
  if (now() > call.deadlineMs) throw new EngineFault('transient', 'the deadline had passed before the call began')
  return step()
}
