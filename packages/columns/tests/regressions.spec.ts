import { replayModel } from '@alkblobs/conformance/model'
import { describe, test } from 'vitest'
import { embeddedColumns } from '../src/index.js'
import { regressions } from './regressions.js'

for (const make of embeddedColumns) {
  const factory = make()
  describe(factory.name, () => {
    for (const { name, setup, steps } of regressions) test(name, () => replayModel(factory, setup, steps))
  })
}
