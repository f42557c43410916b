/** Running a column: every row that applies to a factory, one after the other, each with a verdict of its own. */
import { type EngineSummary, lacking, type StoreFactory } from './factory.js'
import type { InvariantId } from './invariants.js'
import type { Row } from './row.js'

/** What became of a row in a column. `not-applicable`: the factory lacks a trait the row needs; `skip`: it could not be run. */
export type RowStatus = 'pass' | 'fail' | 'skip' | 'not-applicable'

/** One cell of the matrix. */
export interface RowResult {
  readonly name: string
  readonly invariant: InvariantId
  readonly status: RowStatus
  /** Why a row failed, was skipped or does not apply. */
  readonly reason?: string
  /** The seed of a randomised row. */
  readonly seed?: number
}

/** One column of the report. */
export interface ColumnResult {
  readonly column: string
  readonly engines: readonly EngineSummary[]
  readonly rows: readonly RowResult[]
}

/** How long one row may take before it counts as hanging, in milliseconds. */
export const ROW_TIMEOUT_MS = 60_000

/** The longest reason a report carries, in characters. */
const REASON_LENGTH_MAX = 2000

const describe = (error: unknown) => {
  const text = error instanceof Error ? `${error.name}: ${error.message}` : String(error)
  return text.slice(0, REASON_LENGTH_MAX)
}

/** The result of a row that does not apply; `undefined` if it does. */
export function notApplicable(factory: StoreFactory, row: Row): RowResult | undefined {
  const missing = lacking(factory, row.needs)
  if (missing.length === 0) return undefined
  return { name: row.name, invariant: row.invariant, status: 'not-applicable', reason: `needs ${missing.join(', ')}` }
}

/** The result of a row that has run. */
export function verdict(row: Row, error?: unknown): RowResult {
  const { name, invariant } = row
  return error === undefined
    ? { name, invariant, status: 'pass' }
    : { name, invariant, status: 'fail', reason: describe(error) }
}

/** A column whose engines cannot be had here: every row that applies is skipped, for that reason. */
export function skippedColumn(factory: StoreFactory, rows: readonly Row[], reason: string): ColumnResult {
  return {
    column: factory.name,
    engines: [],
    rows: rows.map(row => {
      const { name, invariant } = row
      return notApplicable(factory, row) ?? { name, invariant, status: 'skip', reason }
    })
  }
}

/**
 * Runs one row against a factory, within its time, and tears the factory down whatever happened.
 * @throws what the row threw; a row that hangs is a violation of its own.
 */
export async function runRow(factory: StoreFactory, row: Row, timeoutMs = ROW_TIMEOUT_MS): Promise<void> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${row.name} did not end within ${timeoutMs} ms`)), timeoutMs)
  })
  try {
    await Promise.race([row.run(factory), late])
  } finally {
    clearTimeout(timer)
    await factory.teardown()
  }
}

/** Runs every row of a column and answers the whole column; a failing row does not end it. `onRow` hears of each as it ends. */
export async function runColumn(
  factory: StoreFactory,
  rows: readonly Row[],
  onRow: (result: RowResult) => void = () => {}
): Promise<ColumnResult> {
  const results: RowResult[] = []
  for (const row of rows) {
    const result =
      notApplicable(factory, row) ??
      (await runRow(factory, row).then(
        () => verdict(row),
        error => verdict(row, error ?? new Error('no reason'))
      ))
    results.push(result)
    onRow(result)
  }
  return { column: factory.name, engines: await factory.engines(), rows: results }
}
