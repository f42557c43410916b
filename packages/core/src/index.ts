/** `@alkblobs/core`: what a user of a store needs. Engine authors find their contract in `@alkblobs/core/engine`. */
export type { OperationTrace } from './channels.js'
export type { FleetOptions, StoreMode, StoreOptions } from './config.js'
export type { BlobContent } from './content.js'
export type { ForkOptions } from './copies.js'
export type { DeleteOutcome } from './delete.js'
export type { FailedDrop } from './drop.js'
export type { Durability, EngineDefinition } from './engine.js'
export {
  type AnyBlobError,
  BlobError,
  type BlobErrorCode,
  BlobRemovedError,
  BlobTooLargeError,
  CorruptBlobError,
  EngineError,
  type FleetClause,
  FleetConfigError,
  GcRefusedError,
  InvalidArgumentError,
  InvalidContentError,
  InvalidKeyError,
  isBlobError,
  KeyMismatchError,
  LengthMismatchError,
  PoolRefusedError,
  PutError,
  StoreClosedError
} from './errors.js'
export type { JoinedReceipt, JoinedStore } from './joined.js'
export { type Algorithm, type BlobKey, isKey, parseKey } from './key.js'
export type { BlobStat, StoreUsage } from './looking.js'
export type { MaintainOptions, MaintenanceReport } from './maintain.js'
export { openStore } from './open.js'
export type { Orphan } from './orphans.js'
export type { Pin } from './pin.js'
export type { PoolSettings } from './pool.js'
export type { PutOptions, PutReceipt } from './put-options.js'
export type { Store } from './store.js'
export type { GetOptions, ListOptions, SignalOption } from './store-options.js'
export type { StoredBlob } from './stored-blob.js'
export type {
  AnsweringSource,
  EnumeratingSource,
  LivenessSource,
  Protection,
  TableSource
} from './sweep/liveness.js'
export type { SweepAbort, SweepOptions, SweepProgress, SweepReport } from './sweep/report.js'
export type { VerifyOptions, VerifyReport } from './verify.js'
export type { Why } from './why.js'
export type { BlobWriter } from './writer.js'
