/** Every column of this repository, in the order of the report. */
import { kvOnlyMem, kvOnlySqlite, memLocal, memOnly, sqliteLocal } from './embedded-columns.js'
import type { ColumnFactory, Place } from './factory.js'
import { fleetKvOnlyPostgres, fleetPostgresLocal, fleetPostgresPglo } from './fleet-columns.js'
import { kvOnlyPostgres, memPglo, postgresLocal, postgresPglo, sqlitePglo } from './postgres-columns.js'

type MakeFactory = (place?: Place) => ColumnFactory

/** The columns that need nothing but this process and a disk, in the order of the report. */
export const embeddedColumns: readonly MakeFactory[] = [memOnly, kvOnlyMem, memLocal, sqliteLocal, kvOnlySqlite]

/** The columns that need a PostgreSQL server, in the order of the report. */
export const postgresColumns: readonly MakeFactory[] = [
  postgresLocal,
  kvOnlyPostgres,
  memPglo,
  postgresPglo,
  sqlitePglo,
  fleetPostgresLocal,
  fleetKvOnlyPostgres,
  fleetPostgresPglo
]

/** Every column, in the order of the report. */
export const columns: readonly MakeFactory[] = [...embeddedColumns, ...postgresColumns]
