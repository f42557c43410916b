/** Long streams into large objects and out again: little of them lies in memory, and nobody is ever far ahead of the other. */
import { setImmediate as turn } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { Child, isLong, report } from '../processes/children.js'
import { chunksOf, contentOf, holds, MIB, onServer, testPool } from './pools.js'
import { Wire } from './wire.js'

const LIMIT_MS = isLong ? 600_000 : 60_000
/** The whole process: node, the driver, two windows in core and two in the engine, each as bytes and as text. */
const PEAK_MIB_MAX = 200
/** What may be on its way from the producer to the server: those four windows, and chunks. */
const AHEAD_MIB_MAX = 6
/** Turns of the event loop in which a producer that nobody holds back would be through. */
const TURNS = 2_000

// O31, O53: 96 MiB here, 1 GiB in the long run, with the same bounds.
onServer('a stream', () => {
  it(`of ${isLong ? '1 GiB' : '96 MiB'} goes in and comes out in less than ${PEAK_MIB_MAX} MiB`, {
    timeout: LIMIT_MS
  }, async () => {
    const { db, schema } = await testPool('postgres + pglo')
    const length = (isLong ? 1_024 : 96) * MIB
    const child = new Child('../../postgres/workers/stream.mjs', {
      given: { url: db.url, schema, length },
      limitMs: LIMIT_MS,
      node: ['--max-old-space-size=128']
    })
    const said = await child.next<Record<'length' | 'read' | 'idleMiB' | 'peakMiB' | 'putMs' | 'getMs', number>>()
    await child.finish()
    report(`memory over large objects: ${JSON.stringify(said)}`)
    expect(said).toMatchObject({ length, read: length })
    expect(said.peakMiB).toBeLessThan(PEAK_MIB_MAX)
  })

  it('is pulled no further while the server takes nothing', async () => {
    const pool = await testPool('postgres + pglo')
    const wire = await Wire.to(pool.db)
    const store = await pool.open({ port: wire.port })
    const bytes = contentOf('pulled', 32 * MIB)
    let pulled = 0
    let stalled: () => void = () => undefined
    const isStalled = new Promise<void>(resolve => {
      stalled = resolve
    })
    const putting = store.put(
      (async function* () {
        for await (const chunk of chunksOf(bytes)) {
          pulled += chunk.length
          if (pulled === 8 * MIB) {
            wire.stall()
            stalled()
          }
          yield chunk
        }
      })()
    )
    await isStalled
    for (let n = 0; n < TURNS; n++) await turn()
    const aheadMiB = (pulled - 8 * MIB) / MIB
    wire.flow()
    const receipt = await putting
    report(`stalled server: ${aheadMiB} MiB ahead`)
    expect(aheadMiB).toBeLessThanOrEqual(AHEAD_MIB_MAX)
    expect(receipt.length).toBe(bytes.length)
    expect(await holds(store, receipt.key, bytes)).toBe(true)
  })

  it('is fetched no further than its consumer has come', async () => {
    const pool = await testPool('postgres + pglo')
    const wire = await Wire.to(pool.db)
    const store = await pool.open({ port: wire.port })
    const receipt = await store.put(contentOf('fetched', 16 * MIB))
    const before = wire.answered
    const reader = (await store.get(receipt.key))?.stream().getReader()
    for (let n = 1; n <= 3; n++) {
      await reader?.read()
      for (let i = 0; i < TURNS; i++) await turn()
      // A window comes as text, a third longer than its bytes; one may be on its way.
      expect((wire.answered - before) / MIB).toBeLessThan((n + 1) * 1.4)
    }
    await reader?.cancel()
    for (let i = 0; i < TURNS; i++) await turn()
    expect((wire.answered - before) / MIB).toBeLessThan(4 * 1.4)
  })
})
