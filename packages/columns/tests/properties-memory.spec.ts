/** The store model over the columns whose catalog is in memory. Where there are files, they lie in memory too. */
import { describe } from 'vitest'
import { kvOnlyMem, memLocal, memOnly, memoryFolder } from '../src/index.js'
import { testModel } from './model.js'

describe('a store', () => {
  testModel(memOnly(), 2_500)
  testModel(kvOnlyMem(), 2_000)
  testModel(memLocal({ below: memoryFolder() }), 4_000)
})
