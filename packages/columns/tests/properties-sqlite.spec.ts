/** The store model over the columns whose catalog is SQLite. The files lie in memory: what is tried is the protocol, not the disk. */
import { describe } from 'vitest'
import { kvOnlySqlite, memoryFolder, sqliteLocal } from '../src/index.js'
import { testModel } from './model.js'

const place = { below: memoryFolder() }

describe('a store', () => {
  testModel(sqliteLocal(place), 4_500)
  testModel(kvOnlySqlite(place), 3_000)
})
