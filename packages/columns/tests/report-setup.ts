/** Around a test run: forgets the columns of earlier runs, and merges those of this one into the report. */
import { clearColumns, readColumns, reportOf, writeReport } from '@alkblobs/conformance'
import { columnFolder, reportFile } from './folders.js'

export async function setup(): Promise<void> {
  await clearColumns(columnFolder)
}

export async function teardown(): Promise<void> {
  const columns = await readColumns(columnFolder)
  // A run of other tests alone has no columns, and leaves the last report as it is.
  if (columns.length > 0) await writeReport(reportFile, reportOf(columns))
}
