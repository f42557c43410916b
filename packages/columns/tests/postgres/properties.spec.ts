/** The store model over the columns that need a server. */
import { noServer } from '@alkblobs/testkit'
import { describe } from 'vitest'
import { memoryFolder, postgresColumns } from '../../src/index.js'
import { testModel } from '../model.js'

describe.skipIf(noServer() !== undefined)('on a server, a store', () => {
  for (const make of postgresColumns) testModel(make({ below: memoryFolder() }), 7_000)
})
