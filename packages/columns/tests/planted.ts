/** How a planted fault is tried: on the first of some columns in which it can show. */
import { lacking, type Row, rows, runColumn } from '@alkblobs/conformance'
import { faults, type PlantedFault, planted } from '@alkblobs/conformance/broken'
import { expect, test } from 'vitest'
import { type columns, memoryFolder } from '../src/index.js'

/** A whole column runs in each of these tests. */
const COLUMN_TIMEOUT_MS = 180_000

type Make = (typeof columns)[number]

/** The faults that can show in one of the columns, with the first such. */
export function shownIn(makes: readonly Make[]): readonly (readonly [PlantedFault, Make])[] {
  return faults.flatMap(fault => {
    const make = makes.find(candidate => lacking(candidate(), fault.needs).length === 0)
    return make === undefined ? [] : [[fault, make] as const]
  })
}

/** `tried`: the rows that run, which must be all that can meet the fault. */
export function testPlanted(fault: PlantedFault, make: Make, tried: readonly Row[] = rows): void {
  test(
    `"${fault.name}" fails exactly the rows that it names`,
    async () => {
      // A factory of its own: whoever tears down ends all that the factory has made. What a fault does not depend on is a disk.
      const factory = make({ below: memoryFolder() })
      const { rows: results } = await runColumn(planted(factory, fault), tried)
      const failed = results.filter(({ status }) => status === 'fail').map(({ name }) => name)
      expect(failed.sort()).toEqual([...fault.caughtBy].sort())
    },
    COLUMN_TIMEOUT_MS
  )
}
