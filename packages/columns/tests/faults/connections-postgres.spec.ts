// Every surface of postgres, struck by each way in which a connection can end.
import '@alkblobs/faults/vitest'
import { noServer } from '@alkblobs/testkit'
import { describe, expect, it } from 'vitest'
import { LIMIT_MS, strikeAll, WAYS } from './connections.js'

const reason = noServer()

describe.skipIf(reason !== undefined)(`a connection that ends${reason === undefined ? '' : ` (${reason})`}`, () => {
  it.each(WAYS)(
    'under any call ($layer, $leg) loses nothing, and the next one works',
    { timeout: LIMIT_MS },
    async way => {
      expect(await strikeAll('postgres + pglo', way, 'postgres')).toEqual([])
    }
  )
})
