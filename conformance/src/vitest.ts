/** Binds a column to vitest: one test for each row that applies, and the column's part of the report at the end. */
import { afterAll, describe, test } from 'vitest'
import {
  type ColumnResult,
  notApplicable,
  ROW_TIMEOUT_MS,
  type RowResult,
  runRow,
  skippedColumn,
  verdict
} from './column.js'
import type { StoreFactory } from './factory.js'
import { writeColumn } from './report.js'
import type { Row } from './row.js'

/** Where a binding leaves its column. */
export interface ColumnOptions {
  /** The folder that columns are written to; relative to the working directory. Default: `test-results/conformance`. */
  readonly folder?: string
  /** Why the engines of the column cannot be had on this machine: every row is then reported as skipped, for that reason. */
  readonly unavailable?: string | undefined
}

/** A title a person can read: the name of the row in words. */
const title = (name: string) => name.replaceAll('_', ' ')

/** Declares the tests of one column. Call it at the top of a test file; one file for each column lets them run side by side. */
export function describeColumn(factory: StoreFactory, rows: readonly Row[], options: ColumnOptions = {}): void {
  const { folder = 'test-results/conformance', unavailable } = options
  describe(`conformance of ${factory.name}`, () => {
    if (unavailable === undefined) declare(factory, rows, folder)
    else declareSkipped(skippedColumn(factory, rows, unavailable), folder, unavailable)
  })
}

function declare(factory: StoreFactory, rows: readonly Row[], folder: string): void {
  const results = new Map<string, RowResult>()
  for (const row of rows) {
    const excused = notApplicable(factory, row)
    if (excused !== undefined) {
      results.set(row.name, excused)
      continue
    }
    test(
      title(row.name),
      async () => {
        try {
          await runRow(factory, row)
          results.set(row.name, verdict(row))
        } catch (error) {
          results.set(row.name, verdict(row, error ?? new Error('no reason')))
          throw error
        }
      },
      // The row's own limit fires first and names the row.
      ROW_TIMEOUT_MS + 10_000
    )
  }
  afterAll(async () => {
    const column: ColumnResult = {
      column: factory.name,
      engines: await factory.engines(),
      rows: rows.flatMap(row => results.get(row.name) ?? [])
    }
    await writeColumn(folder, column)
  })
}

/** The first of the skipped tests begins, and leaves the report: where none does, vitest runs no hook either. */
function declareSkipped(column: ColumnResult, folder: string, reason: string): void {
  const [first, ...others] = column.rows.filter(({ status }) => status === 'skip')
  if (first === undefined) return
  test(title(first.name), async ({ skip }) => {
    await writeColumn(folder, column)
    skip(reason)
  })
  for (const { name } of others) test.skip(title(name))
}
