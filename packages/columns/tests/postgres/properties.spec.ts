/** The store model over the columns that need a server, and a fleet that is wrong in one way. */
import { tapped } from '@alkblobs/conformance'
import { type PlantedFault, planted } from '@alkblobs/conformance/broken'
import { runModel } from '@alkblobs/conformance/model'
import { noServer } from '@alkblobs/testkit'
import { describe, expect, test } from 'vitest'
import { fleetKvOnlyPostgres, memoryFolder, postgresColumns } from '../../src/index.js'
import { testModel } from '../model.js'

/** Outside a fleet this is what a renewal does; in one, others have acted on the expiry. */
const revives: PlantedFault = {
  name: 'revives in a fleet',
  statement: 'a renewal lets an expired pin row live on though nobody asks for it (ENG-RENEW-2)',
  caughtBy: [],
  needs: ['fleet', 'age'],
  plant: () => definition =>
    tapped(definition, {
      catalog: inner => ({ renew: (request, call) => inner.renew({ ...request, revive: true }, call) })
    })
}

const FIND_LIMIT_MS = 60_000

describe.skipIf(noServer() !== undefined)('on a server, a store', () => {
  for (const make of postgresColumns) testModel(make({ below: memoryFolder() }), 4_500)

  test(
    'of a fleet that revives what has expired is found by the model',
    async () => {
      const wrong = planted(fleetKvOnlyPostgres({ below: memoryFolder() }), revives)
      const options = { seed: 1, timeLimitMs: FIND_LIMIT_MS, shrinkLimitMs: 0 }
      await expect(runModel(wrong, options)).rejects.toThrow(/Property failed[\s\S]*seed: 1/)
    },
    FIND_LIMIT_MS + 10_000
  )
})
