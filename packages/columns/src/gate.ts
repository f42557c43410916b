/** The gate over a report that a run has left on disk: the same findings as over a run, and doubt where there is no report of it. */
import { readFile } from 'node:fs/promises'
import { type ConformanceReport, findings, matrix, type Row, reportOf, type StoreFactory } from '@alkblobs/conformance'

/** What the gate says: the run as a table, and everything that is wrong with it, each as one line. */
export interface Gated {
  readonly table: string
  readonly found: readonly string[]
}

type Columns = readonly Pick<StoreFactory, 'name' | 'traits'>[]

/** The gate over columns that have just run. */
export function gate(columns: ConformanceReport['columns'], rows: readonly Row[], factories: Columns): Gated {
  return { table: matrix(columns, rows), found: findings(columns, rows, factories) }
}

/** The gate over the report in a file. Nothing is run; a report that is not there, or of something else, is a finding. */
export async function gateFile(file: string, rows: readonly Row[], factories: Columns): Promise<Gated> {
  const report = await readReport(file)
  if (typeof report === 'string') return { table: '', found: [report] }
  const now = reportOf([])
  const gated = gate(report.columns, rows, factories)
  const stale = (['contractVersion', 'node'] as const).filter(field => report[field] !== now[field])
  return {
    table: gated.table,
    found: [...stale.map(field => `the report is of ${field} ${report[field]}, not ${now[field]}`), ...gated.found]
  }
}

/** The report, or what is wrong with the file. */
async function readReport(file: string): Promise<ConformanceReport | string> {
  let text: string
  try {
    text = await readFile(file, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
    return 'there is no report: no column has run'
  }
  try {
    const report = JSON.parse(text) as ConformanceReport
    if (Array.isArray(report.columns)) return report
  } catch {
    // What is no JSON is no report, as the line below says.
  }
  return 'the file holds no report'
}
