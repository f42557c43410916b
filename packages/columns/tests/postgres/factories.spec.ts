import { noServer } from '@alkblobs/testkit'
import { describe } from 'vitest'
import { postgresColumns } from '../../src/index.js'
import { describeFactory } from '../factory-promises.js'

describe.skipIf(noServer() !== undefined)('on a server', () => {
  for (const make of postgresColumns) describeFactory(make)
})
