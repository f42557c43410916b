import { replayModel } from '@alkblobs/conformance/model'
import { noServer } from '@alkblobs/testkit'
import { describe, test } from 'vitest'
import { postgresColumns } from '../../src/index.js'
import { regressions } from '../regressions.js'

for (const make of postgresColumns) {
  const factory = make()
  describe.skipIf(noServer() !== undefined)(factory.name, () => {
    for (const { name, setup, steps } of regressions) test(name, () => replayModel(factory, setup, steps))
  })
}
