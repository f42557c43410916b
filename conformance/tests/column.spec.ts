/** The runner and the gate over its report, with rows and factories made up for the purpose. */
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import {
  clearColumns,
  findings,
  matrix,
  type Row,
  readColumns,
  row,
  runColumn,
  runRow,
  type StoreFactory,
  skippedColumn,
  writeColumn
} from '../src/index.js'

const rowOf = (name: string, run: Row['run'] = async () => {}, needs: Row['needs'] = []) =>
  row({ name, statement: 'It holds.', stamps: ['docs/x.md#y'], invariant: 'INV-1', needs, run })

function factoryOf(name = 'pretend', traits: StoreFactory['traits'] = ['mem-only', 'inline']) {
  const seen = { teardowns: 0 }
  const factory: StoreFactory = {
    name,
    traits,
    threshold: undefined,
    engines: async () => [{ name: 'pretend', version: '1.2.3', capabilities: ['catalog'] }],
    open: () => Promise.reject(new Error('not here')),
    async teardown() {
      seen.teardowns += 1
    }
  }
  return { factory, seen }
}

describe('a column', () => {
  test('gives each row its verdict, and goes on after a failure', async () => {
    const { factory, seen } = factoryOf()
    const fails = rowOf('it_fails', () => Promise.reject(new Error('the property does not hold')))
    const column = await runColumn(factory, [fails, rowOf('it_holds'), rowOf('it_needs_more', undefined, ['reopen'])])
    expect(column.engines).toEqual([{ name: 'pretend', version: '1.2.3', capabilities: ['catalog'] }])
    expect(column.rows).toMatchObject([
      { name: 'it_fails', status: 'fail', reason: 'Error: the property does not hold' },
      { name: 'it_holds', status: 'pass' },
      { name: 'it_needs_more', status: 'not-applicable', reason: 'needs reopen' }
    ])
    expect(seen.teardowns, 'each row that ran was torn down, the failing one too').toBe(2)
  })

  test('a row that rejects without a reason is a failure all the same', async () => {
    const { rows: results } = await runColumn(factoryOf().factory, [rowOf('it_fails', () => Promise.reject())])
    expect(results).toMatchObject([{ status: 'fail' }])
  })

  test('a row that hangs fails within its time and is torn down', async () => {
    const { factory, seen } = factoryOf()
    await expect(
      runRow(
        factory,
        rowOf('it_hangs', () => new Promise(() => {})),
        20
      )
    ).rejects.toThrow(/it_hangs did not end/)
    expect(seen.teardowns).toBe(1)
  })
})

describe('the gate', () => {
  const { factory } = factoryOf()
  const [one, two] = [rowOf('row_one'), rowOf('row_two', undefined, ['reopen'])]
  const result = (name: string, status: 'pass' | 'fail' | 'skip' | 'not-applicable') =>
    ({ name, invariant: 'INV-1', status, reason: 'because' }) as const
  const columnOf = (...rows: ReturnType<typeof result>[]) => [{ column: 'pretend', engines: [], rows }]

  test('passes a column that ran what it has to', () => {
    expect(findings(columnOf(result('row_one', 'pass')), [one], [factory])).toEqual([])
  })

  test.each([
    ['a failure', columnOf(result('row_one', 'fail')), ['pretend: row_one: fail: because']],
    ['a skip', columnOf(result('row_one', 'skip')), ['pretend: row_one: skip: because']],
    [
      'a column with no rows',
      columnOf(),
      ['pretend: no row ran', 'pretend: row_one is missing', 'row_one ran nowhere']
    ],
    ['a column that did not run', [], ['pretend: no row ran', 'pretend: row_one is missing', 'row_one ran nowhere']],
    [
      'a row excused without a cause',
      columnOf(result('row_one', 'not-applicable')),
      ['pretend: no row ran', 'pretend: row_one is missing', 'row_one ran nowhere']
    ]
  ])('fails %s', (_, columns, expected) => {
    expect(findings(columns, [one], [factory])).toEqual(expected)
  })

  test('fails a row that no column runs', () => {
    const columns = columnOf(result('row_one', 'pass'), result('row_two', 'not-applicable'))
    expect(findings(columns, [one, two], [factory])).toEqual(['row_two ran nowhere'])
  })

  test('prints rows down and columns across', () => {
    const lines = matrix(columnOf(result('row_one', 'fail')), [one, two]).split('\n')
    expect(lines[0]).toBe('row      pretend')
    expect(lines.slice(2)).toEqual(['row_one  FAIL', 'row_two  ?'])
  })
})

test('a column whose engines cannot be had is skipped as a whole, row by row, with the reason', () => {
  const { factory } = factoryOf('away')
  const applies = rowOf('it_holds')
  const lacks = rowOf('it_needs_a_file', undefined, ['file'])
  const { engines, rows } = skippedColumn(factory, [applies, lacks], 'no server answers')
  expect({ engines, rows }).toMatchObject({
    engines: [],
    rows: [
      { name: 'it_holds', status: 'skip', reason: 'no server answers' },
      { name: 'it_needs_a_file', status: 'not-applicable' }
    ]
  })
})

describe('columns on disk', () => {
  let folder = ''
  beforeEach(async () => {
    folder = await mkdtemp(join(tmpdir(), 'alkblobs-report-'))
  })
  afterEach(() => rm(folder, { recursive: true, force: true }))

  test('are read back, and forgotten when cleared', async () => {
    const column = await runColumn(factoryOf('a + b').factory, [rowOf('it_holds')])
    await writeColumn(join(folder, 'columns'), column)
    expect(await readColumns(join(folder, 'columns'))).toEqual([column])
    await clearColumns(join(folder, 'columns'))
    expect(await readColumns(join(folder, 'columns'))).toEqual([])
  })
})
