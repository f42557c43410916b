/** The test of the tests: every planted fault fails exactly the rows its file names, and no other. */
import { lacking, rows, runColumn } from '@alkblobs/conformance'
import { faults, planted } from '@alkblobs/conformance/broken'
import { describe, expect, test } from 'vitest'
import { embeddedColumns, memoryFolder } from '../src/index.js'

/** A whole column runs in each of these tests. */
const COLUMN_TIMEOUT_MS = 180_000

// Side by side: much of a column is waiting.
describe.concurrent('a planted fault', () => {
  for (const fault of faults) {
    test(
      `"${fault.name}" fails exactly the rows that it names`,
      async () => {
        // What a fault does not depend on is a disk: all rows run, and none waits for one.
        const made = embeddedColumns.map(make => make({ below: memoryFolder() }))
        const factory = made.find(candidate => lacking(candidate, fault.needs).length === 0)
        expect(factory, 'a column in which the fault shows').toBeDefined()
        if (factory === undefined) return
        const { rows: results } = await runColumn(planted(factory, fault), rows)
        const failed = results.filter(({ status }) => status === 'fail').map(({ name }) => name)
        expect(failed.sort()).toEqual([...fault.caughtBy].sort())
      },
      COLUMN_TIMEOUT_MS
    )
  }

  test('names rows that exist', () => {
    const names = new Set(rows.map(({ name }) => name))
    expect(faults.flatMap(({ caughtBy }) => caughtBy).filter(name => !names.has(name))).toEqual([])
  })
})
