/** The real core over engine-mem: every interleaving of the inline configurations. */
import { describe } from 'vitest'
import { CONFIGURATIONS } from '../src/configurations/index.js'
import { searchAll } from './searching.js'

describe('inline form', () => {
  searchAll(CONFIGURATIONS.filter(({ form }) => form === 'inline'))
})
