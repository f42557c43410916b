/** The store model over the columns that need a server. */
import { noServer } from '@alkblobs/testkit'
import { describe } from 'vitest'
import { memoryFolder, postgresColumns } from '../../src/index.js'
import { testModel } from '../model.js'

describe.skipIf(noServer() !== undefined)('on a server, a store', () => {
  // The model holds a pin until its release, as a store outside a fleet does by renewing before it sweeps; a fleet never revives.
  const made = postgresColumns.map(make => make({ below: memoryFolder() }))
  for (const factory of made.filter(({ traits }) => !traits.includes('fleet'))) testModel(factory, 7_000)
})
