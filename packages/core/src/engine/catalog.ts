/** The catalog half of the contract; the general clauses are in `../engine.ts`. */
import type { Call } from '../engine.js'
import type { BlobKey } from '../key.js'
import type { Found } from './bodies.js'
import type {
  CandidatePage,
  CatalogUsage,
  DeleteMark,
  DropRecord,
  DuePage,
  Entry,
  Explanation,
  Lost,
  Maintenance,
  PinId,
  PinRequest,
  PoolRecord,
  Publication,
  PublishOutcome,
  Removal,
  RemoveOutcome,
  RenewRequest,
  StageId,
  StageIntent,
  Trashed
} from './records.js'
import type { Joining, ServerCatalog } from './server.js'

export interface PoolMeta {
  /** ENG-META-1 MUST answer `undefined` on a virgin medium and create nothing. */
  read(call: Call): Promise<PoolRecord | undefined>
  /**
   * ENG-META-2 MUST replace the record only if it equals `expected` (`undefined`: only if there is none), in one transaction,
   * and say whether it did. It creates the medium and its schema where there is none, safely beside others doing the same.
   */
  compareAndSet(expected: PoolRecord | undefined, next: PoolRecord, call: Call): Promise<boolean>
}

/** An entry as it was read, with its body where that is inline. */
export interface FoundEntry {
  readonly entry: Entry
  readonly body?: Uint8Array
}

/** The right to sweep: at most one holder per pool. */
export interface Lease {
  /** ENG-LEASE-3 MUST fire when the right is lost or in doubt. */
  readonly lost: AbortSignal
  /**
   * Present where the catalog judges enumerated live keys itself (a temporary table beside the lease). Core adds every key
   * before the first `candidates` or `remove` under this lease; both then treat them as live. Absent: core keeps the set.
   * Keys come as their raw digests, one behind the other, in a buffer that is the catalog's from then on. What an `add` left to do
   * and failed at, the next `add`, `candidates` or `remove` fails with, and each after it.
   */
  readonly live?: { add(digests: Uint8Array, call: Call): Promise<void> }
  /** Ends the lease; idempotent, never throws for a lease that is lost already. */
  release(): Promise<void>
}

/** An embedder's own table that names live keys, judged by the server inside `candidates` and `remove`. */
export interface SqlSource {
  readonly table: string
  readonly column: string
}
export interface SqlLiveness {
  /**
   * ENG-SQL-1 MUST refuse with a `liveness` error a table or column that is not there, or whose rows may be hidden from us. From then on the
   *           table is judged inside `candidates` and `remove`, which throw `liveness` and change nothing if it is gone or changed.
   * ENG-SQL-2 Registering twice is idempotent.
   */
  register(source: SqlSource, call: Call): Promise<void>
  unregister(source: SqlSource): void
  /** Which registered tables reference the key, as `table.column`. */
  liveBy(key: BlobKey, call: Call): Promise<readonly string[]>
  /** ENG-SQL-3 MUST answer which of the keys any registered table references now, or throw `liveness` where `candidates` and `remove` would. */
  among(keys: readonly BlobKey[], lease: Lease | undefined, call: Call): Promise<readonly BlobKey[]>
}

/** The transactional authority on what exists. */
export interface Catalog {
  /** The most bytes one entry may hold inline; a larger threshold is refused at open. */
  readonly inlineLengthMax: number
  /** `inline`: one sweep stages and executes (memory of one process). `durable`: staged by one sweep, executed by a later one. */
  readonly form: 'inline' | 'durable'
  readonly meta: PoolMeta

  /** ENG-FIND-1 MUST answer one entry or `undefined` per key, in order, without reading bodies. */
  find(keys: readonly BlobKey[], call: Call): Promise<readonly (Entry | undefined)[]>
  /** ENG-READ-1 MUST return the inline body in the same round trip, in a buffer that is the caller's from then on. */
  read(key: BlobKey, call: Call): Promise<FoundEntry | undefined>
  /**
   * Present where a read waits for nobody. ENG-READ-2 MUST answer before it returns what `read` would, or `undefined`, also where it finds
   * nothing: then, and where this throws, core asks `read`.
   */
  readNow?(key: BlobKey): FoundEntry | undefined
  /**
   * Present where many reads together cost less than each by itself. ENG-READ-3 MUST run `reads` once before it returns, or throw: then core
   * asks `read` for what was not read. No `readNow` in it may answer from a state of the pool that was over when this was called, and nothing
   * may be left open when this returns or throws. Core guarantees that `reads` calls `readNow` alone and throws nothing.
   */
  readTogether?(reads: () => void): void
  /**
   * ENG-LIST-1 MUST list in key order (of the raw digest) entries after `after` (exclusive), at most `limit`.
   * ENG-LIST-2 An entry that exists throughout a sequence of pages MUST appear exactly once.
   */
  list(after: BlobKey | undefined, limit: number, call: Call): Promise<readonly Entry[]>
  explain(key: BlobKey, call: Call): Promise<Explanation>
  /** ENG-USAGE-1 MUST be cheap beside reading bodies, and MUST NOT make publishes queue on a counter. */
  usage(call: Call): Promise<CatalogUsage>

  /** ENG-STAGE-1 MUST write the intents; they expire `ttlMs` from now unless renewed. */
  stage(stages: readonly StageIntent[], call: Call): Promise<void>
  /** ENG-STAGE-2 MUST say per stage whether its row is there and unexpired. */
  staged(stages: readonly StageId[], call: Call): Promise<readonly boolean[]>
  /**
   * ENG-STAGE-3 MUST move the rows of those stages to trash, droppable at once, and say per stage whether there was one. A stage that is gone
   *             already is no error: its publication may have gone through, so its body must be left alone.
   */
  unstage(stages: readonly StageId[], call: Call): Promise<readonly boolean[]>

  /**
   * In one transaction for each item:
   * ENG-PUBLISH-1 MUST check the contract stamp and throw a `newer` error if it does not know it.
   * ENG-PUBLISH-2 MUST answer `stage-lost`, and do nothing, if the bytes are staged and the stage row is gone or has expired.
   * ENG-PUBLISH-3 MUST make the entry if the key has none: `created`, and the stage row ends.
   * ENG-PUBLISH-4 MUST answer `existed` with the entry if there is one, leaving entry and stage as they are; the first writer wins.
   * ENG-PUBLISH-5 With `healing`, if the entry still lies at that place: MUST point it at the new bytes, end the stage row, move the old
   *               locator to trash with `trashDelayMs`, and answer `healed`. If it lies elsewhere: `existed`.
   * ENG-PUBLISH-6 MUST, on created, existed and healed, write the pin row or renew it (the highest generation stays, the expiry never
   *               moves back), and MUST mark every window row and delete mark of the key as cancelled, pin or no pin.
   * ENG-PUBLISH-7 Under an inline epoch the key MUST be protected until the epoch ends.
   * ENG-PUBLISH-8 MUST have done with the memory of inline bodies when it resolves, and keep no view of it: core uses it again. Where it
   *               rejects or misses its deadline it may still be reading, and core lets the memory go.
   */
  publish(items: readonly Publication[], call: Call): Promise<readonly PublishOutcome[]>
  /** ENG-PIN-1 MUST do for an entry that exists what ENG-PUBLISH-6 and -7 say, and answer it; absent is `undefined`. */
  pin(items: readonly PinRequest[], call: Call): Promise<readonly (Entry | undefined)[]>
  /**
   * ENG-RENEW-1 MUST move the expiry of every pin row of that key and owner whose generation is the named one or higher, and of every
   *             unexpired stage, and answer those it did not find.
   * ENG-RENEW-2 MUST NOT make a row; an expired pin row lives on only with `revive`; an expired stage never does.
   * ENG-RENEW-3 MUST, where it revives an expired pin row, do for the key what ENG-PIN-1 does: it may have been staged or marked meanwhile.
   */
  renew(request: RenewRequest, call: Call): Promise<Lost>
  /** ENG-RELEASE-1 MUST end the row only if its generation is the named one or lower. Gone already is no error. */
  release(pins: readonly PinId[], call: Call): Promise<void>

  /**
   * ENG-LEASE-1 MUST answer `undefined` at once while anybody else, in this process or another, holds the lease.
   * ENG-LEASE-2 MUST be free again when its holder died, without anybody's help.
   * ENG-LEASE-4 On an inline form the lease opens the epoch: every key pinned now, and every key that a publish or pin finds or makes until the
   *             lease is released, is protected under this lease.
   */
  lease(call: Call): Promise<Lease | undefined>
  /**
   * ENG-CANDIDATES-1 MUST look at each entry once, from the cursor `after` on, answer at most `limit` keys, cancelled ones included, however many
   *                  entries it looked at, and change nothing. Without a lease, for a dry run, what is pinned now or referenced by a
   *                  registered table is protected, and nothing else.
   */
  candidates(lease: Lease | undefined, after: string | undefined, limit: number, call: Call): Promise<CandidatePage>
  /**
   * ENG-WINDOW-1 MUST, under the lease and the contract stamp, write a row for every key that has an entry, no row, and no unexpired pin now, and
   *              answer those keys; each row remembers the window delay in force.
   */
  stageCandidates(lease: Lease, keys: readonly BlobKey[], call: Call): Promise<readonly BlobKey[]>
  /**
   * ENG-WINDOW-2 MUST page through the rows that are due, oldest first: cancelled, or staged at least `max(delay then, delay now)` ago.
   *              On an inline form every row is due.
   */
  due(lease: Lease, after: string | undefined, limit: number, call: Call): Promise<DuePage>
  /** ENG-MARK-1 MUST, in one transaction, answer `pinned` under an unexpired pin, `absent` without an entry, else write a fresh mark. */
  mark(key: BlobKey, call: Call): Promise<{ readonly mark: DeleteMark; readonly entry: Entry } | 'pinned' | 'absent'>
  /**
   * Arbitration and removal, for each item in one transaction from fresh state:
   * ENG-REMOVE-1 MUST check the contract stamp and, for candidates, that the lease is held; if not it throws and removes nothing.
   * ENG-REMOVE-2 MUST remove the entry only if no unexpired pin of any owner is there, `live` is false, nothing the catalog judges says live, and
   *              the window row or mark is there and not cancelled (inline: the key is not protected by the epoch).
   * ENG-REMOVE-3 MUST, with the entry, remove what is left of its expired pin rows, and move its locator to trash with `trashDelayMs`.
   * ENG-REMOVE-4 MUST end the candidate's row or the mark, whichever way it decides, except `busy`.
   * ENG-REMOVE-5 A candidate whose entry is gone already is `deleted` without an entry, unless its row was cancelled.
   * ENG-REMOVE-6 A direct delete MUST leave a sweep's row of the key as it is.
   */
  remove(
    items: readonly Removal[],
    trashDelayMs: number,
    lease: Lease | undefined,
    call: Call
  ): Promise<readonly RemoveOutcome[]>

  /**
   * ENG-TRASH-1 MUST page through trash that may be dropped now, in order of `what`.
   * ENG-TRASH-2 MUST NOT answer anything whose trashing transaction could still be undone by a power loss, whatever the durability.
   */
  trash(after: string | undefined, limit: number, call: Call): Promise<readonly Trashed[]>
  /** ENG-TRASH-3 MUST say which bodies are known: their key's entry lies there, their stage row is there, or either name is in trash. */
  known(found: readonly Found[], call: Call): Promise<readonly boolean[]>
  /** ENG-TRASH-5 MUST move bodies to trash, droppable at once, each only if it is still unknown in that transaction. */
  discard(found: readonly Found[], call: Call): Promise<void>
  /** ENG-TRASH-4 MUST end the rows of what was dropped, and put off the others. */
  dropped(records: readonly DropRecord[], call: Call): Promise<void>
  /** ENG-MAINTAIN-1 MUST end expired pin rows, move expired stages to trash, and end delete marks that a dead process left. */
  maintain(lease: Lease, call: Call): Promise<Maintenance>

  /** Present where an embedder's tables can be judged beside the entries. */
  readonly sqlLiveness?: SqlLiveness
  /** Present where the catalog lies on a server: several hosts may share it. */
  readonly server?: ServerCatalog
  /** Present where entries can be made inside a transaction of the application. */
  readonly joining?: Joining
}
