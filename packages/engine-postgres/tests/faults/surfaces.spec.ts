// What the engine offers and what its `classify` knows; the faults themselves are tried on whole stores, in packages/columns.
import { away, contestedSurfaces, fullDisk, outOfDescriptors, partsOf } from '@alkblobs/faults'
import { freshSchema, noServer } from '@alkblobs/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { postgres } from '../../src/index.js'

const reason = noServer()
const context = { algorithm: 'sha256', lockTimeoutMs: 1_000, connectTimeoutMs: 5_000 } as const

describe.skipIf(reason !== undefined)(`an engine on a server${reason === undefined ? '' : ` (${reason})`}`, () => {
  it('offers what the list of surfaces says of it, and names what its driver throws', async () => {
    const { url, schema, drop } = await freshSchema()
    onTestFinished(drop)
    const engine = await postgres({ url, schema }).open(context)
    onTestFinished(() => engine.close())
    expect(partsOf(engine)).toEqual(
      contestedSurfaces.engines.postgres?.parts.filter(part => part !== 'catalog.lease.live')
    )
    expect([fullDisk('postgres'), outOfDescriptors('postgres'), away('postgres')].map(engine.classify)).toEqual([
      'full',
      'exhausted',
      'transient'
    ])
  })
})
