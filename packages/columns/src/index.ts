/** The conformance columns of this repository, for its own tests. */
export { columns, embeddedColumns, postgresColumns } from './columns.js'
export { kvOnlyMem, kvOnlySqlite, memLocal, memOnly, sqliteLocal } from './embedded-columns.js'
export { type ColumnDraft, type ColumnFactory, factoryOf, type Media, type Place } from './factory.js'
export { fleetKvOnlyPostgres, fleetPostgresLocal, fleetPostgresPglo } from './fleet-columns.js'
export { kvOnlyPostgres, memPglo, postgresLocal, postgresPglo, sqlitePglo } from './postgres-columns.js'
export { memoryFolder } from './site.js'
