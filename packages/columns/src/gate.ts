/** The gate over a report that a run has left on disk: the same findings as over a run, and doubt where there is no report of it. */
import { readFile } from 'node:fs/promises'
import { type ConformanceReport, findings, matrix, type Row, reportOf } from '@alkblobs/conformance'
import type { ColumnFactory } from './factory.js'

/** What the gate says: the run as a table, everything that is wrong with it, and every column this machine cannot run, each as one line. */
export interface Gated {
  readonly table: string
  /** The servers that columns ran on. */
  readonly servers: readonly string[]
  readonly found: readonly string[]
  readonly skipped: readonly string[]
}

type Column = ConformanceReport['columns'][number]
type Columns = readonly Pick<ColumnFactory, 'name' | 'traits' | 'needsServer'>[]

/** What a run is judged by. */
export interface Judgement {
  readonly rows: readonly Row[]
  readonly factories: Columns
  /** A column that was skipped as a whole is a finding too. */
  readonly isServerRequired: boolean
  /** The major version of PostgreSQL that the columns on a server must have run on. Default: any. */
  readonly postgres?: string | undefined
  /** Columns that the report may have beside those that are judged: another part of it. */
  readonly beside?: readonly string[]
}

/** The gate over columns that have just run. */
export function gate(all: ConformanceReport['columns'], judgement: Judgement): Gated {
  const { rows, factories, isServerRequired, beside = [] } = judgement
  const columns = all.filter(({ column }) => !beside.includes(column))
  const servers = [...new Set(columns.flatMap(serversOf))]
  const found = [...findings(columns, rows, factories), ...columns.flatMap(column => strayed(column, judgement))]
  const table = matrix(columns, rows)
  if (isServerRequired) return { table, servers, found, skipped: [] }
  const whole = columns.flatMap(column => {
    const { needsServer } = factories.find(({ name }) => name === column.column) ?? { needsServer: false }
    const applied = column.rows.filter(({ status }) => status !== 'not-applicable')
    const reason = applied[0]?.reason
    const isWhole = applied.length > 0 && applied.every(each => each.status === 'skip' && each.reason === reason)
    return needsServer && isWhole ? [{ column: column.column, reason, rows: applied }] : []
  })
  // A column of which one row was skipped is none that cannot be had here: its findings stay.
  const excused = new Set(
    whole.flatMap(({ column, reason, rows: skipped }) =>
      skipped.map(({ name }) => `${column}: ${name}: skip: ${reason}`)
    )
  )
  return {
    table,
    servers,
    found: found.filter(line => !excused.has(line)),
    skipped: whole.map(({ column, reason }) => `${column}: skipped: ${reason}`)
  }
}

const serversOf = ({ engines }: Column) => engines.flatMap(({ server = [] }) => server)

/** A column that ran on another server than the one that is asked for, or does not tell on which. */
function strayed(column: Column, { factories, postgres }: Judgement): string[] {
  const needsServer = factories.find(({ name }) => name === column.column)?.needsServer ?? false
  const hasRun = column.rows.some(({ status }) => status === 'pass' || status === 'fail')
  if (!needsServer || !hasRun) return []
  const servers = serversOf(column)
  if (servers.length === 0) return [`${column.column}: does not tell which server it ran on`]
  const isAsked = (server: string) => postgres === undefined || server.startsWith(`PostgreSQL ${postgres}.`)
  return servers.filter(server => !isAsked(server)).map(server => `${column.column}: ran on ${server}, not ${postgres}`)
}

/** The gate over the report in a file. Nothing is run; a report that is not there, or of something else, is a finding. */
export async function gateFile(file: string, judgement: Judgement): Promise<Gated> {
  const report = await readReport(file)
  if (typeof report === 'string') return { table: '', servers: [], found: [report], skipped: [] }
  const now = reportOf([])
  const gated = gate(report.columns, judgement)
  const stale = (['contractVersion', 'node'] as const).filter(field => report[field] !== now[field])
  return {
    ...gated,
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
