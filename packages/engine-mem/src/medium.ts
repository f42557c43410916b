/**
 * The memory of one pool: what a SQL engine keeps in tables, as maps.
 *
 *   entries   key -> length, place, inline body      stages   stage id -> expiry
 *   pins      key -> owner -> generation             trash    locator or stage id -> what is known of it, droppable from when
 *   window    key -> row, oldest first               marks    key -> mark -> cancelled?
 *
 * Every method of the catalog works on it in one synchronous step, and that is all the transaction there is: nobody can
 * look in between. Pins need no expiry, because their holder dies with this memory; stages have one, like everywhere.
 */
import type {
  BlobKey,
  Call,
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
  cancelled: boolean
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

/** The lease in force, and the epoch it opened: the keys that the sweep under it must leave alone. */
export interface HeldLease {
  readonly lease: Lease
  readonly epoch: Set<BlobKey>
}

export class Medium implements MemMedium {
  declare readonly [brand]: 'MemMedium'
  record: PoolRecord | undefined
  readonly entries = new SortedMap<BlobKey, StoredEntry>()
  readonly pins = new Map<BlobKey, Map<Owner, number>>()
  readonly window = new Map<BlobKey, WindowRow>()
  readonly marks = new Map<BlobKey, Map<DeleteMark, MarkRow>>()
  readonly stages = new Map<StageId, number>()
  readonly trash = new SortedMap<Locator | StageId, TrashRow>()
  held: HeldLease | undefined
  /** Window rows ever written: the next one's place in the queue. */
  rows = 0

  /** ENG-PUBLISH-6 and -7: what every put and every pin does in the very step that makes or finds the entry. */
  protect(key: BlobKey, pin: PinRow | undefined): void {
    if (pin !== undefined) {
      const owners = this.pins.get(key) ?? new Map<Owner, number>()
      owners.set(pin.owner, Math.max(pin.generation, owners.get(pin.owner) ?? pin.generation))
      this.pins.set(key, owners)
    }
    const row = this.window.get(key)
    if (row !== undefined) row.cancelled = true
    for (const mark of this.marks.get(key)?.values() ?? []) mark.cancelled = true
    this.held?.epoch.add(key)
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
