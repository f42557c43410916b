/** The body store half of the contract; the general clauses are in `../engine.ts`. */
import type { Call } from '../engine.js'
import type { BlobKey } from '../key.js'
import type { DropResult, Locator, PoolId, StageId } from './records.js'
import type { ServerMedium } from './server.js'

/** Whom a medium of bodies belongs to. */
export interface Claim {
  readonly poolId: PoolId
  /** `exclusive`: of a volatile catalog, one process at a time. */
  readonly mode: 'shared' | 'exclusive'
}

/** What the medium really holds under one name. */
export interface Found {
  readonly stage: StageId
  /** Present for a sealed body. */
  readonly sealed?: {
    readonly locator: Locator
    readonly key: BlobKey
    readonly length: number
    readonly whole: boolean
  }
}
export interface ScanPage {
  readonly found: readonly Found[]
  readonly next: string | undefined
}

/** A dumb keeper of large bytes. */
export interface BodyStore {
  /** BODY-CLAIM-1 MUST tell whose medium this is, create nothing, and answer `undefined` only for a medium that holds nothing yet. */
  claimed(call: Call): Promise<Claim | undefined>
  /**
   * BODY-CLAIM-2 MUST bind the medium to the pool if it is unclaimed, and answer the claim now in force; core refuses one that is not its own.
   * BODY-CLAIM-3 An exclusive claim MUST be held by one process at a time, until `close` or the holder's death; held by another: `'held'`.
   */
  claim(claim: Claim, call: Call): Promise<Claim | 'held'>
  /** BODY-CREATE-1 MUST fail rather than reuse what is there. Nothing may be visible under a locator before `seal`. */
  create(stage: StageId, hint: { readonly length?: number }, call: Call): Promise<BodyWriter>
  /**
   * BODY-READ-1 MUST yield exactly the bytes of the range, in chunks of at most WINDOW_LENGTH that are the consumer's; fewer only if the medium holds fewer.
   * BODY-READ-2 MUST throw a `gone` error if nothing lies under the locator while the medium itself is readable.
   * BODY-READ-3 MUST open nothing before the first pull and close everything however the loop ends. An engine may keep a bounded number
   *             of bodies open for the next read, if that neither keeps a dropped one's bytes on the medium nor hides that one is gone
   *             for longer than a turn of the event loop.
   * Core guarantees `0 <= start < end`; it may end the loop while a pull is under way. The deadline bounds each pull, not the loop.
   */
  read(locator: Locator, range: { readonly start: number; readonly end: number }, call: Call): AsyncIterable<Uint8Array>
  /**
   * Present where a short range is read without waiting. BODY-READ-4 MUST answer before it returns exactly the bytes of the range, in a buffer
   * that is the caller's and holds nothing else, or `undefined` where it has not all of them at once: then, and where this throws, core asks `read`.
   */
  readNow?(locator: Locator, range: { readonly start: number; readonly end: number }): Uint8Array | undefined
  /** BODY-LENGTH-1 MUST answer the bytes really held; `undefined` only if nothing lies there while the medium itself is readable. */
  length(locator: Locator, call: Call): Promise<number | undefined>
  /** BODY-DROP-1 MUST remove whatever it ever made for the locator or stage, durably; gone already is done; a failure is that item's result. */
  drop(what: readonly (Locator | StageId)[], call: Call): Promise<readonly DropResult[]>
  /** Present where the bodies lie on a server: in a fleet it must be the one that the catalog is on. */
  readonly server?: ServerMedium
  /**
   * BODY-CLAIM-4 MUST put `next` in the place of the claim if that is of `expected`, in one step, and say whether it did. Of a copied pool that
   *              becomes one of its own; an engine whose medium cannot be copied need not offer it.
   */
  reclaim?(expected: PoolId, next: Claim, call: Call): Promise<boolean>
  /** BODY-SCAN-1 MUST page through everything it ever made and still holds, ignoring what it did not make. */
  scan(after: string | undefined, limit: number, call: Call): Promise<ScanPage>
}

/** One body being written. Core calls one method at a time, and `seal` or `discard` last. */
export interface BodyWriter {
  /** BODY-WRITE-1 The chunk is the caller's again when this resolves; it is not empty and does not change before that. */
  write(chunk: Uint8Array): Promise<void>
  /** BODY-SEAL-1 MUST make the bytes durable under a fresh locator, then resolve. If it rejects, nothing is left open. */
  seal(key: BlobKey): Promise<Locator>
  /**
   * BODY-DISCARD-1 MUST close what is open and remove what was made; idempotent, also after a failed write or seal. After a seal that
   *                succeeded core calls it only where nothing was published: the seal missed its deadline, or the stage was lost.
   */
  discard(): Promise<void>
}
