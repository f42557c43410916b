/** What travels between core and a catalog: names, entries, publications, removals and what became of them. */
import type { Algorithm, BlobKey } from '../key.js'
import type { ServerIdentity } from './server.js'

/** Names a stage; 32 hexadecimal digits of randomness minted by core. It is the unique part of every locator. */
export type StageId = string & { readonly stageId: unique symbol }
/** Where a body store keeps a sealed body. Minted by the body store, at most 512 characters, never used twice. */
export type Locator = string & { readonly locator: unique symbol }
/** Names a pool; minted when it is made. */
export type PoolId = string & { readonly poolId: unique symbol }
/** Names the holder of pins: one open store. */
export type Owner = string & { readonly owner: unique symbol }
/** Names a direct delete under way. */
export type DeleteMark = string & { readonly deleteMark: unique symbol }

/** Where an entry's bytes lie. `length` of an inline body is what the medium really holds. */
export type Place =
  | { readonly tier: 'kv'; readonly length: number }
  | { readonly tier: 'large'; readonly locator: Locator }

/** A committed blob. `length` is what its record claims. */
export interface Entry {
  readonly key: BlobKey
  readonly length: number
  readonly place: Place
}

/** What a pool is; written once when it is made. */
export interface PoolRecord {
  readonly poolId: PoolId
  /** The contract stamp: version of the protocol that every writer and sweeper of this pool must know. */
  readonly protocol: number
  readonly algorithm: Algorithm
  /** Shortest time between staging and removal, in milliseconds. */
  readonly windowDelayMs: number
  /** Whether a body store has been bound to the pool: from then on a medium without a claim is away, not new. */
  readonly bodiesClaimed: boolean
  /** The server that the pool was last known to be on, where the catalog lies on one: on another it may be a copy. */
  readonly server?: ServerIdentity
  /** The pool that this one was copied from, while it has not yet claimed the copy of its bodies. */
  readonly forkedFrom?: PoolId
}

/** A durable, expiring intent to write a body. */
export interface StageIntent {
  readonly id: StageId
  readonly ttlMs: number
}

/** A pin row as a put, a pin or a release names it. Generations are minted by the owner and only rise. */
export interface PinRow {
  readonly owner: Owner
  readonly generation: number
}
export interface PinRequest {
  readonly key: BlobKey
  readonly pin: PinRow
  readonly ttlMs: number
}
export interface PinId {
  readonly key: BlobKey
  readonly pin: PinRow
}

/** The bytes that a publication brings. `none` asks only for what is there. The memory of a `body` is core's (ENG-PUBLISH-8). */
export type PublishedBytes =
  | { readonly kind: 'none' }
  | { readonly kind: 'inline'; readonly body: Uint8Array }
  | { readonly kind: 'staged'; readonly stage: StageId; readonly locator: Locator }

export interface Publication {
  readonly key: BlobKey
  readonly length: number
  readonly bytes: PublishedBytes
  /** Absent: protected by the window delay alone. */
  readonly pin?: { readonly row: PinRow; readonly ttlMs: number }
  /** Where core found the entry's bytes broken; the publication may replace the entry only if they still lie there. */
  readonly healing?: Place
  /** How long a body that this publication replaces stays in trash before it may be dropped. */
  readonly trashDelayMs: number
}

/**
 * What became of a publication. `created`: the entry is new. `existed`: an entry was there and is now protected; the stage, if
 * any, stays. `healed`: the entry points at the new bytes. `absent`: without bytes, and no entry. `stage-lost`: the stage has
 * expired or is gone; nothing happened.
 */
export type PublishOutcome =
  | { readonly outcome: 'created' | 'existed' | 'healed'; readonly entry: Entry }
  | { readonly outcome: 'absent' | 'stage-lost' }

export interface RenewRequest {
  readonly pins: readonly PinId[]
  readonly pinTtlMs: number
  readonly stages: readonly StageId[]
  readonly stageTtlMs: number
  /** Whether a pin row that has expired but is still there may live on; never so in a fleet. */
  readonly revive: boolean
}

/** What a renewal could not find any more. */
export interface Lost {
  readonly pins: readonly PinId[]
  readonly stages: readonly StageId[]
}

/** What a staging would take from one page of entries. `scanned = live + alreadyStaged + keys.length`. */
export interface CandidatePage {
  readonly scanned: number
  /** Entries that an unexpired pin, the epoch, or a liveness the catalog judges protects. */
  readonly live: number
  /** Unprotected entries that have a row in the window already. */
  readonly alreadyStaged: number
  /** The keys of those rows that a put or pin has cancelled: the next executing sweep ends them. In key order. */
  readonly cancelled: readonly BlobKey[]
  /** Unprotected entries without a row. */
  readonly keys: readonly BlobKey[]
  /** Opaque cursor of the next page; `undefined` after the last. */
  readonly next: string | undefined
}

export interface DuePage {
  readonly keys: readonly BlobKey[]
  /** Opaque; `undefined` after the last. */
  readonly next: string | undefined
}

/**
 * A removal to arbitrate. `candidate`: a due row of the window, from an executing sweep. `marked`: a direct delete or a repair;
 * with `at` only if the entry still lies there. `live` is what core's sources answered after the key was staged or marked.
 */
export type Removal =
  | { readonly kind: 'candidate'; readonly key: BlobKey; readonly live: boolean }
  | {
      readonly kind: 'marked'
      readonly key: BlobKey
      readonly mark: DeleteMark
      readonly live: boolean
      readonly at?: Place
    }

/**
 * What arbitration decided. `deleted`: the entry is gone; `entry` is what it was, `undefined` when a candidate's entry was gone
 * before. `cancelled`: protected, put or pinned since; the row or mark has ended. `busy`: locked by somebody, nothing
 * changed. `absent`: a marked key without an entry (or no longer at the place named).
 */
export type RemoveOutcome =
  | { readonly outcome: 'deleted'; readonly entry: Entry | undefined }
  | { readonly outcome: 'cancelled' | 'busy' | 'absent' }

/** Bytes that no entry uses any more. */
export interface Trashed {
  /** A locator, or the id of a stage that was never published. */
  readonly what: Locator | StageId
  /** Key and length where they are known (a published body). */
  readonly key: BlobKey | undefined
  readonly length: number | undefined
  /** How often a drop has failed. */
  readonly attempts: number
}

/** What became of one drop. `error` absent: the bytes are gone. */
export interface DropResult {
  readonly what: Locator | StageId
  readonly error?: unknown
}

/** A drop to record: done, or to be tried again after a while. */
export interface DropRecord {
  readonly what: Locator | StageId
  readonly retryAfterMs?: number
}

export interface Explanation {
  readonly entry: Entry | undefined
  readonly pins: readonly { readonly owner: Owner; readonly expiresInMs: number }[]
  /** The row of the window: how long ago it was staged, in how long it is due, whether a put or pin cancelled it. */
  readonly window: { readonly stagedAgoMs: number; readonly dueInMs: number; readonly cancelled: boolean } | undefined
}

export interface TierUsage {
  readonly entries: number
  readonly bytes: number
}
export interface CatalogUsage {
  readonly kv: TierUsage
  readonly large: TierUsage
  readonly pins: number
  readonly window: number
  readonly stages: number
  readonly trash: number
}

export interface Maintenance {
  readonly pinsReaped: number
  readonly stagesTrashed: number
}
