/**
 * The engine contract: what a storage package must do to keep blobs, and all it must do.
 *
 * An engine offers one or both of two things. A CATALOG is transactional and the only authority on what exists:
 * entries with small bodies inline, pins, the window, stages, trash, the lease. A BODY STORE is a dumb keeper of
 * large bytes under locators it mints; it knows no pins, no sweeps and no transactions with anybody.
 *
 * A large body lives through `staged -> published -> trashed -> dropped` or `staged -> trashed -> dropped`, and every
 * step is one catalog transaction. What stops anywhere leaves a stage that expires or trash that is dropped later,
 * never an entry without bytes, never bytes taken from under an entry (docs/spec/safety-argument.md goes through it pair by pair).
 *
 * For every method the comment says what the engine MUST do, each sentence under a clause id that conformance rows
 * cite, and what core GUARANTEES. In general:
 *
 *   ENG-1  A method that resolves has made its effect durable, to the degree the engine declares.
 *   ENG-2  Outcomes are values; a miss is `undefined`. A failure is thrown as the driver threw it and named by
 *          `classify`. A failure of the medium is never reported as absence.
 *   ENG-3  Every method that takes a batch is one transaction for all its items or one for each, at the engine's choice;
 *          an item can fail only itself by its outcome, and outcomes stand in the order of the items.
 *   ENG-4  A method settles within its deadline. After its signal has fired or its deadline has passed it begins nothing
 *          new; what had begun may complete.
 *   ENG-5  Nothing is created by reading a medium that holds no pool yet: the answers are "absent".
 *   ENG-6  Times are the catalog's own clock; nothing compares clocks of two machines.
 *
 * Core guarantees of every call: keys are parsed and of the pool's algorithm, lengths are safe integers, batches are not
 * empty and hold no key twice, no call comes after `close`.
 */
import type { BodyStore } from './engine/bodies.js'
import type { Catalog } from './engine/catalog.js'
import type { Algorithm } from './key.js'

export type * from './engine/bodies.js'
export type * from './engine/catalog.js'
export type * from './engine/records.js'
export type * from './engine/server.js'
export { EngineFault } from './engine-fault.js'
export { InvalidArgumentError } from './errors.js'
export { type Algorithm, algorithmOf, type BlobKey, digestHexOf, digestOf, formatKey, isKey, parseKey } from './key.js'
export { PROTOCOL_VERSION, WINDOW_LENGTH } from './limits.js'

/**
 * What kind of failure an error is.
 * `conflict` lost against another writer, may be tried again; `transient` the medium is away for now; `exhausted` out of
 * descriptors or connections; `full` no space; `denied` no permission or read-only; `corrupt` the medium contradicts
 * itself; `pooled` a proxy gives the sessions of a server to others in between; `gone` a body that was named is not there (and the medium itself is); `foreign` the medium holds something that is no pool;
 * `newer` it holds a pool of a later protocol; `liveness` an embedder's table that judges liveness is gone, changed or hidden from us; `outcome-unknown` a commit whose answer was lost; `unknown` the rest.
 */
export type ErrorCode =
  | 'conflict'
  | 'transient'
  | 'exhausted'
  | 'full'
  | 'denied'
  | 'pooled'
  | 'corrupt'
  | 'gone'
  | 'foreign'
  | 'newer'
  | 'liveness'
  | 'outcome-unknown'
  | 'unknown'

/** How far a resolved call has gone: gone with the process, with the operating system, or safe on disk. */
export type Durability = 'process' | 'os' | 'disk'

/** Travels with every call. */
export interface Call {
  /** Fires when nobody waits for the answer any more. */
  readonly signal?: AbortSignal
  /** When the call must have settled, on the clock of `performance.now()`, in milliseconds. */
  readonly deadlineMs: number
}

/** What core tells an engine when it opens it. */
export interface OpenContext {
  /** The pool's derivation: an engine may keep digests alone. */
  readonly algorithm: Algorithm
  readonly lockTimeoutMs: number
  readonly connectTimeoutMs: number
  /** `durable`: the large tier keeps a durable catalog, and a catalog in memory is to run the same form beside it. */
  readonly form?: 'durable'
}

/** What a user hands to `openStore`: names a medium, opens nothing until told to. It may be opened more than once. */
export interface EngineDefinition {
  /** The engine's name, for messages: `sqlite`. */
  readonly name: string
  /**
   * ENG-OPEN-1 MUST NOT create anything on an embedded medium.
   * ENG-OPEN-2 MUST refuse with a `foreign` or `newer` error a medium that it can see to be no pool of its kind.
   * ENG-OPEN-3 MUST name its failures: it throws an EngineFault, since there is no engine yet whose `classify` could be asked.
   * ENG-OPEN-4 A catalog in memory MUST run the form that the context asks for: its window then waits out the window delay, and a
   *            put or pin between two sweeps cancels its rows, as in a durable catalog.
   */
  open(context: OpenContext): Promise<Engine>
}

export interface Engine {
  readonly name: string
  /** The version of the engine's package, for reports. */
  readonly version: string
  readonly durability: Durability
  readonly catalog?: Catalog
  readonly bodies?: BodyStore
  /** ENG-CLASSIFY-1 MUST name any error its own methods can throw; `unknown` is an answer, throwing is not. */
  classify(error: unknown): ErrorCode
  /** ENG-CLOSE-1 MUST free every descriptor, connection, lock and timer; called once, after every other call settled. */
  close(): Promise<void>
}
