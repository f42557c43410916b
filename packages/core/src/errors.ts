/**
 * What can go wrong, in a dozen classes grouped by when it happens. The `code` is stable and is what programs test;
 * the message is for people. Neither ever holds content, a connection string or a password.
 */
import type { ErrorCode } from './engine.js'
import type { Algorithm, BlobKey } from './key.js'

/** The stable names of failures. */
export type BlobErrorCode =
  | 'ERR_BLOB_INVALID_ARGUMENT'
  | 'ERR_BLOB_INVALID_KEY'
  | 'ERR_BLOB_INVALID_CONTENT'
  | 'ERR_BLOB_TOO_LARGE'
  | 'ERR_BLOB_LENGTH_MISMATCH'
  | 'ERR_BLOB_KEY_MISMATCH'
  | 'ERR_BLOB_PIN_REQUIRED'
  | 'ERR_BLOB_TOO_MANY_PUTS'
  | 'ERR_BLOB_STAGE_LOST'
  | 'ERR_BLOB_PIN_LOST'
  | 'ERR_BLOB_FLEET'
  | 'ERR_BLOB_CORRUPT'
  | 'ERR_BLOB_REMOVED'
  | 'ERR_BLOB_GC_REFUSED'
  | 'ERR_BLOB_STORE_CLOSED'
  | 'ERR_BLOB_POOL_REFUSED'
  | 'ERR_BLOB_ENGINE'

interface BlobErrorOptions {
  readonly key?: BlobKey | undefined
  readonly cause?: unknown
}

/** The base of every error this library makes. */
export class BlobError extends Error {
  readonly code: BlobErrorCode
  /** The key concerned, when it was known. */
  readonly key?: BlobKey

  constructor(code: BlobErrorCode, message: string, options: BlobErrorOptions = {}) {
    super(message, options.cause === undefined ? undefined : { cause: options.cause })
    this.name = new.target.name
    this.code = code
    if (options.key !== undefined) this.key = options.key
  }
}

/** An argument that is of the wrong type or out of bounds; nothing was done. `argument` names it. */
export class InvalidArgumentError extends BlobError {
  declare readonly code: 'ERR_BLOB_INVALID_ARGUMENT'
  readonly argument: string

  constructor(argument: string, expected: string) {
    super('ERR_BLOB_INVALID_ARGUMENT', `${argument} must be ${expected}`)
    this.argument = argument
  }
}

/** A string that is no key, or a key of another algorithm than the pool's. It is not repeated: `index` says which one of many it was. */
export class InvalidKeyError extends BlobError {
  declare readonly code: 'ERR_BLOB_INVALID_KEY'
  readonly reason: 'malformed' | 'algorithm'
  /** The place of the key in the list that was given, from 0; `undefined` for a key that was given alone. */
  readonly index: number | undefined

  constructor(reason: 'malformed' | 'algorithm', { expected, index }: { expected?: Algorithm; index?: number } = {}) {
    const which = index === undefined ? '' : `keys[${index}]: `
    super(
      'ERR_BLOB_INVALID_KEY',
      reason === 'malformed'
        ? `${which}not a blob key: expected "blake3:" or "sha256:" and 64 lower-case hexadecimal digits`
        : `${which}this pool derives its keys with ${expected}; the key given is of another algorithm`
    )
    this.reason = reason
    this.index = index
  }
}

/** Content that is not bytes: a wrong type, a detached buffer, a stream that was used up, a chunk that is no Uint8Array. */
export class InvalidContentError extends BlobError {
  declare readonly code: 'ERR_BLOB_INVALID_CONTENT'
  constructor(message: string, cause?: unknown) {
    super('ERR_BLOB_INVALID_CONTENT', message, { cause })
  }
}

/** Content longer than this store or this put accepts. `lengthMax` is the bound in bytes. Nothing was kept. */
export class BlobTooLargeError extends BlobError {
  declare readonly code: 'ERR_BLOB_TOO_LARGE'
  readonly lengthMax: number

  constructor(lengthMax: number, advice: string) {
    super('ERR_BLOB_TOO_LARGE', `the content is longer than ${lengthMax} bytes: ${advice}`)
    this.lengthMax = lengthMax
  }
}

type PutErrorCode = 'ERR_BLOB_PIN_REQUIRED' | 'ERR_BLOB_TOO_MANY_PUTS' | 'ERR_BLOB_STAGE_LOST' | 'ERR_BLOB_PIN_LOST'

/** A put that contradicts what was promised of it, or cannot go on. Nothing was kept. */
export class PutError extends BlobError {
  declare readonly code: PutErrorCode
  constructor(code: PutErrorCode, message: string, options: BlobErrorOptions = {}) {
    super(code, message, options)
  }
}

/** A stream that ended short or ran long of the length it declared. Lengths in bytes. Nothing was kept. */
export class LengthMismatchError extends BlobError {
  declare readonly code: 'ERR_BLOB_LENGTH_MISMATCH'
  readonly declared: number
  /** Bytes seen when the put gave up; for a long stream the first bytes past the declared length are the last seen. */
  readonly seen: number

  constructor(declared: number, seen: number) {
    super('ERR_BLOB_LENGTH_MISMATCH', `the content was declared to be ${declared} bytes long and had ${seen} or more`)
    if (seen < declared) this.message = `the content was declared to be ${declared} bytes long and ended after ${seen}`
    this.declared = declared
    this.seen = seen
  }
}

/** Content whose key is not the one the put expected. Nothing was kept. */
export class KeyMismatchError extends BlobError {
  declare readonly code: 'ERR_BLOB_KEY_MISMATCH'
  readonly expected: BlobKey
  readonly actual: BlobKey

  constructor(expected: BlobKey, actual: BlobKey) {
    super('ERR_BLOB_KEY_MISMATCH', `expected ${expected}, the content is ${actual}`, { key: actual })
    this.expected = expected
    this.actual = actual
  }
}

/** Stored bytes that are not what the key says, or fewer than the record says. `put(content, { verify: true })` repairs them. */
export class CorruptBlobError extends BlobError {
  declare readonly code: 'ERR_BLOB_CORRUPT'
  constructor(key: BlobKey, found: string, cause?: unknown) {
    super('ERR_BLOB_CORRUPT', `${key} is damaged: ${found}; put the content again with { verify: true } to repair it`, {
      key,
      cause
    })
  }
}

/** The entry was removed while it was being read. Hold a pin to read something that nothing references. */
export class BlobRemovedError extends BlobError {
  declare readonly code: 'ERR_BLOB_REMOVED'
  constructor(key: BlobKey) {
    super('ERR_BLOB_REMOVED', `${key} was removed while it was being read; hold a pin to keep it`, { key })
  }
}

/** A delete that arbitration refused: the entry is pinned, or a liveness source says live. Nothing was removed. */
export class GcRefusedError extends BlobError {
  declare readonly code: 'ERR_BLOB_GC_REFUSED'
  readonly reason: 'pinned' | 'live' | 'source-failed'

  constructor(key: BlobKey, reason: 'pinned' | 'live' | 'source-failed', cause?: unknown) {
    const because = {
      pinned: 'it is pinned, or was put or pinned while it was being deleted',
      live: 'a liveness source still references it; store.why(key) says which',
      'source-failed': 'a liveness source could not say whether it is live'
    }[reason]
    super('ERR_BLOB_GC_REFUSED', `${key} was not deleted: ${because}`, { key, cause })
    this.reason = reason
  }
}

/** A call on a store that is closed, or one that was under way when it closed. */
export class StoreClosedError extends BlobError {
  declare readonly code: 'ERR_BLOB_STORE_CLOSED'
  constructor() {
    super('ERR_BLOB_STORE_CLOSED', 'the store is closed')
  }
}

/**
 * A pool that this store must not use. `reason` says which doubt:
 * `newer` (made by a later version), `derivation`, `media` (bodies of another pool), `foreign` (not a pool at all),
 * `settings` (recorded otherwise), `held` (a volatile pool that another process has open), `moved` (on another server than
 * before: it may be a copy, which must remove nothing until it is forked or acknowledged).
 */
export class PoolRefusedError extends BlobError {
  declare readonly code: 'ERR_BLOB_POOL_REFUSED'
  readonly reason: 'newer' | 'derivation' | 'media' | 'foreign' | 'settings' | 'held' | 'moved'

  constructor(reason: PoolRefusedError['reason'], message: string, cause?: unknown) {
    super('ERR_BLOB_POOL_REFUSED', message, { cause })
    this.reason = reason
  }
}

/** Which rule of a fleet was broken. */
export type FleetClause = 'catalog' | 'server' | 'pooling' | 'sessions' | 'pin-ttl' | 'large-medium' | 'same-instance'

/**
 * A store that may not join a fleet as it was opened. `clause` says by which rule:
 * `catalog` (the kv tier is not on a server), `server` (the server cannot host a fleet), `pooling` (a proxy in between pools by transaction), `sessions` (fewer than two), `pin-ttl`,
 * `large-medium` (nobody said that the hosts share it), `same-instance` (large objects on another server, or on one that would not say).
 */
export class FleetConfigError extends BlobError {
  declare readonly code: 'ERR_BLOB_FLEET'
  readonly clause: FleetClause

  constructor(clause: FleetClause, message: string, cause?: unknown) {
    super('ERR_BLOB_FLEET', message, { cause })
    this.clause = clause
  }
}

/** A failure of the storage medium. `cause` is the driver's own error. */
export class EngineError extends BlobError {
  declare readonly code: 'ERR_BLOB_ENGINE'
  readonly engine: string
  readonly operation: string
  /** What kind of failure, in the engine's own judgement. */
  readonly kind: ErrorCode
  /** Whether the same call may well succeed later without anybody doing anything. */
  readonly transient: boolean

  constructor(engine: string, operation: string, kind: ErrorCode, advice: string, options: BlobErrorOptions = {}) {
    super('ERR_BLOB_ENGINE', `${engine} failed at ${operation}: ${advice}`, options)
    this.engine = engine
    this.operation = operation
    this.kind = kind
    this.transient = kind === 'transient' || kind === 'conflict' || kind === 'exhausted'
  }
}

/** Every error of this library: testing `code` narrows it to the class with its fields. */
export type AnyBlobError =
  | InvalidArgumentError
  | InvalidKeyError
  | InvalidContentError
  | BlobTooLargeError
  | PutError
  | LengthMismatchError
  | KeyMismatchError
  | CorruptBlobError
  | BlobRemovedError
  | GcRefusedError
  | StoreClosedError
  | PoolRefusedError
  | FleetConfigError
  | EngineError

/** Whether an error is one of this library, by any copy of it: `if (isBlobError(e) && e.code === 'ERR_BLOB_TOO_LARGE') e.lengthMax`. */
export function isBlobError(error: unknown): error is AnyBlobError {
  return (
    error instanceof Error && 'code' in error && typeof error.code === 'string' && error.code.startsWith('ERR_BLOB_')
  )
}
