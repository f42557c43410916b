/**
 * The contract of alkblobs' engines as an executable suite: rows that any engine must pass, the shape of a factory that
 * brings an engine to them, a runner and a report. No test runner is imported here.
 */
export {
  type ColumnResult,
  notApplicable,
  ROW_TIMEOUT_MS,
  type RowResult,
  type RowStatus,
  runColumn,
  runRow,
  skippedColumn,
  verdict
} from './column.js'
export { bytesOf, contentMatrix, type InterestingSize, interestingSizes, tierLengths } from './content.js'
export { summaryOf } from './engine-summary.js'
export { equal, holds, PropertyViolation, present, refuses, sameBytes, settled } from './expect.js'
export {
  type ApplicationTable,
  type Damage,
  type EngineSummary,
  type JoinableTransaction,
  lacking,
  type MediumCounts,
  type MediumOracle,
  type OpenTransaction,
  type OpenTuning,
  type StoredPin,
  type StoreFactory,
  TRAITS,
  type Trait
} from './factory.js'
export { INVARIANTS, type InvariantId } from './invariants.js'
export {
  type ConformanceReport,
  clearColumns,
  findings,
  matrix,
  readColumns,
  reportOf,
  writeColumn,
  writeReport
} from './report.js'
export { over, type Row, type RowDraft, row } from './row.js'
export { rows } from './rows/index.js'
export { CHUNKINGS, type Chunking, PUT_PATHS, type PutPath, type Source, sourcesOf } from './sources.js'
export {
  type Gate,
  gate,
  type Operation,
  type Overrides,
  override,
  type Tap,
  tapped,
  type Watcher,
  watch
} from './tap.js'
