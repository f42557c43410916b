/**
 * A column of the application's own tables, as `sweep --live-sql` takes it: `table.column` or `schema.table.column`, each part as it is
 * written in the database, in double quotes where it contains a dot.
 */
import type { TableSource } from '@alkblobs/core'
import { UsageError } from './exit-codes.js'

const PART = '"(?:[^"]|"")+"|[^".]+'
const COLUMN = new RegExp(`^((?:${PART})(?:\\.(?:${PART}))?)\\.(${PART})$`)

/** @throws UsageError for a text that names no column. */
export function parseTableColumn(text: string): TableSource {
  const [, table, column] = COLUMN.exec(text) ?? []
  if (table === undefined || column === undefined) {
    throw new UsageError('--live-sql wants table.column or schema.table.column')
  }
  return { table, column: column.startsWith('"') ? column.slice(1, -1).replaceAll('""', '"') : column }
}
