/** The test of the tests: every planted fault fails exactly the rows its file names, and no other. */
import { rows } from '@alkblobs/conformance'
import { faults } from '@alkblobs/conformance/broken'
import { describe, expect, test } from 'vitest'
import { columns, embeddedColumns } from '../src/index.js'
import { shownIn, testPlanted } from './planted.js'

// Side by side: much of a column is waiting.
describe.concurrent('a planted fault', () => {
  for (const [fault, make] of shownIn(embeddedColumns)) testPlanted(fault, make)

  test('names rows that exist', () => {
    const names = new Set(rows.map(({ name }) => name))
    expect(faults.flatMap(({ caughtBy }) => caughtBy).filter(name => !names.has(name))).toEqual([])
  })

  test('can show in some column', () => {
    expect(shownIn(columns).map(([{ name }]) => name)).toEqual(faults.map(({ name }) => name))
  })
})
