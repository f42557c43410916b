/** The planted faults that show only where the catalog is on a server. */
import { rows } from '@alkblobs/conformance'
import { noServer } from '@alkblobs/testkit'
import { describe } from 'vitest'
import { embeddedColumns, postgresColumns } from '../../src/index.js'
import { shownIn, testPlanted } from '../planted.js'

const elsewhere = new Set(shownIn(embeddedColumns).map(([{ name }]) => name))

describe.skipIf(noServer() !== undefined)('a planted fault', () => {
  for (const [fault, make] of shownIn(postgresColumns)) {
    if (elsewhere.has(fault.name)) continue
    // The others never come to what is wrong, and a whole column on a server takes half a minute.
    const tried = rows.filter(({ needs }) => fault.needs.some(trait => needs.includes(trait)))
    testPlanted(fault, make, tried)
  }
})
