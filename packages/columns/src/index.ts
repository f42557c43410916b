/** The conformance columns of this repository, for its own tests. */
export { columns, kvOnlyMem, kvOnlySqlite, memLocal, memOnly, sqliteLocal } from './columns.js'
export { type ColumnDraft, factoryOf, type Media, type Place } from './factory.js'
export { memoryFolder } from './site.js'
