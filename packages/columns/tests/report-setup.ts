/**
 * Around a test run: forgets the columns of earlier runs, and merges those of this one into the report. The parts of `npm test` run
 * one after the other: each forgets its own columns alone, and its report has what the others left.
 */
import { clearColumns, readColumns, reportOf, writeReport } from '@alkblobs/conformance'
import { columnFolder, isApart, postgresFolder, reportFile } from './folders.js'

export async function setup(): Promise<void> {
  const part = process.env.ALKBLOBS_TEST_PART
  if (part === undefined || part === 'embedded') await clearColumns(columnFolder)
  if (part === undefined || part === 'postgres') await clearColumns(postgresFolder)
}

export async function teardown(): Promise<void> {
  const embedded = isApart ? [] : await readColumns(columnFolder)
  const columns = [...embedded, ...(await readColumns(postgresFolder))]
  // A run of other tests alone has no columns, and leaves the last report as it is.
  if (columns.length > 0) await writeReport(reportFile, reportOf(columns))
}
