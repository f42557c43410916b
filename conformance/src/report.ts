/**
 * The report of a run, and the gate over it.
 *
 *   { contractVersion, node, columns: [{ column, engines: [{ name, version, capabilities, server? }],
 *     rows: [{ name, invariant, status, reason?, seed? }] }] }
 *
 * Columns may run in different processes: each writes a file of its own, and they are merged afterwards, so that no two
 * of them write one file.
 */
import { mkdir, readdir, readFile, rename, rm, writeFile } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PROTOCOL_VERSION } from '@alkblobs/core/engine'
import type { ColumnResult, RowStatus } from './column.js'
import { lacking, type StoreFactory } from './factory.js'
import type { Row } from './row.js'

/** What a run writes to `test-results/conformance.json`. */
export interface ConformanceReport {
  /** The protocol version that the rows hold engines against. */
  readonly contractVersion: number
  /** The version of Node that ran them. */
  readonly node: string
  readonly columns: readonly ColumnResult[]
}

/** A report over these columns, by this process. */
export function reportOf(columns: readonly ColumnResult[]): ConformanceReport {
  return { contractVersion: PROTOCOL_VERSION, node: process.version, columns }
}

async function writeWhole(file: string, content: unknown): Promise<void> {
  await mkdir(dirname(file), { recursive: true })
  const half = `${file}.${process.pid}.half`
  await writeFile(half, `${JSON.stringify(content, null, 2)}\n`)
  await rename(half, file)
}

/** Writes a report, whole or not at all. */
export async function writeReport(file: string, report: ConformanceReport): Promise<void> {
  await writeWhole(file, report)
}

/** Writes one column into a folder of columns. */
export async function writeColumn(folder: string, column: ColumnResult): Promise<void> {
  await writeWhole(join(folder, `${column.column.replace(/[^a-z0-9]+/gi, '-')}.json`), column)
}

/** Removes the columns of earlier runs, so that a merge holds this run alone. */
export async function clearColumns(folder: string): Promise<void> {
  await rm(folder, { recursive: true, force: true })
}

/** Reads every column of a folder, in the order of their names. */
export async function readColumns(folder: string): Promise<readonly ColumnResult[]> {
  // A folder that no column was written to is a run without columns, which the gate reports as such.
  const files = await readdir(folder).catch(() => [] as string[])
  const texts = files
    .filter(file => file.endsWith('.json'))
    .sort()
    .map(file => readFile(join(folder, file), 'utf8'))
  return (await Promise.all(texts)).map(text => JSON.parse(text) as ColumnResult)
}

/**
 * What is wrong with a run, each as one line; empty when it is sound. A run fails on a failed or skipped row, a column with no
 * rows, a row that is missing from a column whose traits call for it, and a row that ran nowhere; and on what it does not know:
 * a column or a row that is none, a row told twice.
 */
export function findings(
  columns: readonly ColumnResult[],
  rows: readonly Row[],
  factories: readonly Pick<StoreFactory, 'name' | 'traits'>[]
): readonly string[] {
  const found: string[] = unknownIn(columns, rows, factories)
  for (const factory of factories) {
    const results = columns.find(({ column }) => column === factory.name)?.rows ?? []
    if (results.every(({ status }) => status === 'not-applicable')) found.push(`${factory.name}: no row ran`)
    for (const row of rows.filter(({ needs }) => lacking(factory, needs).length === 0)) {
      const status = results.find(({ name }) => name === row.name)?.status
      if (status === undefined || status === 'not-applicable') found.push(`${factory.name}: ${row.name} is missing`)
    }
    for (const { name, status, reason } of results) {
      if (status === 'fail' || status === 'skip')
        found.push(`${factory.name}: ${name}: ${status}: ${reason ?? 'no reason'}`)
    }
  }
  const ran = new Set(
    columns.flatMap(({ rows: results }) =>
      results.filter(({ status }) => status !== 'not-applicable').map(({ name }) => name)
    )
  )
  for (const { name } of rows) if (!ran.has(name)) found.push(`${name} ran nowhere`)
  return found
}

/** What a report tells of columns and rows that nobody has, or tells twice. */
function unknownIn(
  columns: readonly ColumnResult[],
  rows: readonly Row[],
  factories: readonly Pick<StoreFactory, 'name'>[]
): string[] {
  const known = new Set(rows.map(({ name }) => name))
  return columns.flatMap(({ column, rows: results }) => {
    if (!factories.some(({ name }) => name === column)) return [`${column}: nobody asked for it`]
    const names = results.map(({ name }) => name)
    return [
      ...names.filter(name => !known.has(name)).map(name => `${column}: ${name} is no row`),
      ...names.filter((name, at) => names.indexOf(name) !== at).map(name => `${column}: ${name} is told twice`)
    ]
  })
}

const SIGNS: Readonly<Record<RowStatus, string>> = { pass: 'pass', fail: 'FAIL', skip: 'SKIP', 'not-applicable': '-' }

/** The run as a table for people: rows down, columns across. */
export function matrix(columns: readonly ColumnResult[], rows: readonly Row[]): string {
  const nameLength = Math.max(0, ...rows.map(({ name }) => name.length))
  const head = `${'row'.padEnd(nameLength)}  ${columns.map(({ column }) => column).join('  ')}`
  const lines = rows.map(({ name }) => {
    const cells = columns.map(({ column, rows: results }) => {
      const status = results.find(result => result.name === name)?.status
      return (status === undefined ? '?' : SIGNS[status]).padEnd(column.length)
    })
    return `${name.padEnd(nameLength)}  ${cells.join('  ')}`.trimEnd()
  })
  return [head, '-'.repeat(head.length), ...lines].join('\n')
}
