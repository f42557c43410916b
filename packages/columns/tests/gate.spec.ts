/** The gate over a report on disk: what a run must have left so that it counts. */
import { spawnSync } from 'node:child_process'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type ConformanceReport,
  notApplicable,
  type RowStatus,
  reportOf,
  rows,
  skippedColumn,
  verdict
} from '@alkblobs/conformance'
import { describe, expect, test } from 'vitest'
import { gate, gateFile } from '../src/gate.js'
import { columns, postgresColumns } from '../src/index.js'
import { temporaryFolder } from './bad-input/stores.js'

const factories = columns.map(make => make())
const engine = { name: 'an engine', version: '1.0.0', capabilities: [] }
const [first] = factories as [(typeof factories)[number]]

/** A report as a run leaves it in which everything that applies has passed. */
function sound(): ConformanceReport {
  return reportOf(
    factories.map(factory => ({
      column: factory.name,
      engines: factory.needsServer ? [{ ...engine, server: 'PostgreSQL 15.18' }] : [engine],
      rows: rows.map(row => notApplicable(factory, row) ?? verdict(row))
    }))
  )
}

type Column = ConformanceReport['columns'][number]

/** The report with one column changed. */
function changed(change: (column: Column) => Column | undefined): ConformanceReport {
  const report = sound()
  return {
    ...report,
    columns: report.columns.flatMap(column => (column.column === first.name ? (change(column) ?? []) : column))
  }
}

const withStatus = (name: string, status: RowStatus) => (column: Column) => ({
  ...column,
  rows: column.rows.map(each => (each.name === name ? { ...each, status, reason: 'because' } : each))
})

async function found(content: unknown): Promise<readonly string[]> {
  const file = join(temporaryFolder(), 'conformance.json')
  writeFileSync(file, typeof content === 'string' ? content : JSON.stringify(content))
  return (await gateFile(file, { rows, factories, isServerRequired: true })).found
}

const applicable = rows.find(row => row.needs.length === 0)?.name ?? ''
/** A row that the first column runs and no other. */
const lonely = rows.filter(row => factories.filter(each => notApplicable(each, row) === undefined).length === 1)

describe('the gate over a report', () => {
  test('passes one in which everything that applies has passed, and prints it', async () => {
    expect(await found(sound())).toEqual([])
    const file = join(temporaryFolder(), 'conformance.json')
    writeFileSync(file, JSON.stringify(sound()))
    const { table } = await gateFile(file, { rows, factories, isServerRequired: true })
    expect(table.split('\n')).toHaveLength(rows.length + 2)
    for (const { name } of factories) expect(table).toContain(name)
  })

  test.each<RowStatus>(['fail', 'skip'])('fails one with a row of status "%s"', async status => {
    const expected = [`${first.name}: ${applicable}: ${status}: because`]
    expect(await found(changed(withStatus(applicable, status)))).toEqual(expected)
  })

  test('fails one in which a row is missing from a column, or excused from it without a cause', async () => {
    const without = changed(column => ({ ...column, rows: column.rows.filter(({ name }) => name !== applicable) }))
    expect(await found(without)).toEqual([`${first.name}: ${applicable} is missing`])
    const excused = changed(withStatus(applicable, 'not-applicable'))
    expect(await found(excused)).toEqual([`${first.name}: ${applicable} is missing`])
  })

  test('fails one with a column that has no rows, or that did not run', async () => {
    const empty = await found(changed(column => ({ ...column, rows: [] })))
    expect(empty[0]).toBe(`${first.name}: no row ran`)
    expect(await found(changed(() => undefined))).toEqual(empty)
  })

  test('fails one in which a row ran nowhere', async () => {
    const report = sound()
    const columnsWithout = report.columns.map(column => ({
      ...column,
      rows: column.rows.filter(({ name }) => name !== applicable)
    }))
    expect(await found({ ...report, columns: columnsWithout })).toContain(`${applicable} ran nowhere`)
    for (const { name } of lonely) {
      const nowhere = { ...report, columns: report.columns.map(withStatus(name, 'not-applicable')) }
      expect(await found(nowhere)).toContain(`${name} ran nowhere`)
    }
  })

  test('fails one with a column or a row that nobody knows, or a row told twice', async () => {
    const report = sound()
    const stranger = { column: 'a stranger', engines: [], rows: [] }
    expect(await found({ ...report, columns: [...report.columns, stranger] })).toEqual([
      'a stranger: nobody asked for it'
    ])
    const old = changed(column => ({
      ...column,
      rows: [...column.rows, { name: 'a_row_of_old', invariant: 'INV-1', status: 'pass' }]
    }))
    expect(await found(old)).toEqual([`${first.name}: a_row_of_old is no row`])
    const twice = changed(column => ({ ...column, rows: [...column.rows, ...column.rows.slice(0, 1)] }))
    expect(await found(twice)).toEqual([`${first.name}: ${rows[0]?.name} is told twice`])
  })

  test('fails one of another contract or another Node, and what is no report', async () => {
    expect(await found({ ...sound(), contractVersion: 0 })).toEqual([expect.stringContaining('contractVersion 0')])
    expect(await found({ ...sound(), node: 'v1.0.0' })).toEqual([expect.stringContaining('node v1.0.0')])
    for (const content of ['', '{', '[]', '{"columns":7}', 'null'])
      expect(await found(content)).toEqual(['the file holds no report'])
  })

  test('tells of columns that need a server this machine has not, and fails them where one is required', async () => {
    const columnsWithout = sound().columns.map(column => {
      const factory = factories.find(({ name }) => name === column.column) as (typeof factories)[number]
      return factory.needsServer ? skippedColumn(factory, rows, 'no server') : column
    })
    const judged = (columns: readonly Column[], isServerRequired: boolean) =>
      gate(columns, { rows, factories, isServerRequired })
    const { found: none, skipped } = judged(columnsWithout, false)
    expect({ none, skipped: skipped.length }).toEqual({ none: [], skipped: postgresColumns.length })
    expect(skipped).toContain('postgres + local: skipped: no server')
    expect(judged(columnsWithout, true).found.length).toBeGreaterThan(postgresColumns.length)
    const oneRow = sound().columns.map(column =>
      column.column === 'postgres + local' ? withStatus(applicable, 'skip')(column) : column
    )
    expect(judged(oneRow, false).found).toEqual([`postgres + local: ${applicable}: skip: because`])
    const embedded = sound().columns.map(column =>
      column.column === first.name
        ? skippedColumn(factories[0] as (typeof factories)[number], rows, 'no server')
        : column
    )
    expect(judged(embedded, false).skipped).toEqual([])
    expect(judged(embedded, false).found).not.toEqual([])
  })

  test('asks of columns on a server which one that was', async () => {
    const { columns } = sound()
    const judged = (postgres: string | undefined, of = columns) =>
      gate(of, { rows, factories, isServerRequired: true, postgres })
    expect(judged('15')).toMatchObject({ found: [], servers: ['PostgreSQL 15.18'] })
    expect(judged(undefined).found).toEqual([])
    expect(judged('17').found).toEqual(postgresColumns.map(make => `${make().name}: ran on PostgreSQL 15.18, not 17`))
    const silent = columns.map(column => ({ ...column, engines: [engine] }))
    expect(judged(undefined, silent).found).toEqual(
      postgresColumns.map(make => `${make().name}: does not tell which server it ran on`)
    )
  })

  test('judges a part of the columns without the others', async () => {
    const { columns } = sound()
    const own = factories.filter(({ needsServer }) => needsServer)
    const beside = factories.filter(({ needsServer }) => !needsServer).map(({ name }) => name)
    const judgement = { rows: [], factories: own, isServerRequired: true }
    expect(gate(columns, judgement).found).not.toEqual([])
    const { table } = gate(columns, { ...judgement, beside })
    expect(table).not.toContain('sqlite + local')
    expect(table).toContain('postgres + local')
  })

  test('fails without a report', async () => {
    const { found: without } = await gateFile(join(temporaryFolder(), 'nothing.json'), {
      rows,
      factories,
      isServerRequired: false
    })
    expect(without).toEqual(['there is no report: no column has run'])
  })
})

test('the command runs nothing when it is to check, and its exit code is the verdict', () => {
  const script = fileURLToPath(new URL('../dist/report.js', import.meta.url))
  const { status, stdout, stderr } = spawnSync(process.execPath, [script, '--check'], { encoding: 'utf8' })
  expect(stderr).toBe('')
  expect(stdout).toMatch(/conforms: \d+ rows, \d+ columns( \(.+\))?(, \d+ columns skipped)?\n$|\d+ findings\n$/)
  expect(status).toBe(stdout.includes('conforms: ') ? 0 : 1)
})
