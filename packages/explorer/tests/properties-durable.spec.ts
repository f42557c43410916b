/** The real core over a durable catalog and a body store in memory: every interleaving of the durable configurations. */
import { describe } from 'vitest'
import { CONFIGURATIONS } from '../src/configurations/index.js'
import { searchAll } from './searching.js'

describe('durable form', () => {
  searchAll(CONFIGURATIONS.filter(({ form }) => form === 'durable'))
})
