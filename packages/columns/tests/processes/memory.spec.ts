// Memory: a long stream passes through sqlite + local without lying in memory anywhere, in a process with a small heap.
import { expect, it } from 'vitest'
import { Child, isLong, report, temporaryFolder } from './children.js'

const LIMIT_MS = isLong ? 600_000 : 120_000
const MIB = 2 ** 20
/** The whole process: node, sqlite's cache, two windows in core and two in the engine. */
const PEAK_MIB_MAX = 200
/** What may be on its way from the producer to the file: those four windows, and a chunk. */
const AHEAD_MIB_MAX = 6
const HEAP = '--max-old-space-size=128'

// O53: 128 MiB here, 1 GiB in the long run, with the same bounds.
it(`puts and reads back a stream of ${isLong ? '1 GiB' : '128 MiB'} in less than ${PEAK_MIB_MAX} MiB`, {
  timeout: LIMIT_MS
}, async () => {
  const folder = await temporaryFolder()
  const length = (isLong ? 1_024 : 128) * MIB
  const child = new Child('stream.mjs', { given: { folder, length }, limitMs: LIMIT_MS, node: [HEAP] })
  const said = await child.next<{
    length: number
    read: number
    idleMiB: number
    putPeakMiB: number
    peakMiB: number
    aheadMiB: number
    putMs: number
    getMs: number
  }>()
  await child.finish()
  report(`memory: ${JSON.stringify(said)}`)
  expect(said).toMatchObject({ length, read: length })
  expect(said.peakMiB).toBeLessThan(PEAK_MIB_MAX)
  // Pulls track what is in the file, all the way.
  expect(said.aheadMiB).toBeLessThanOrEqual(AHEAD_MIB_MAX)
})

// O53: the medium takes 8 MiB of 64 and then nothing; the producer must stop being asked.
it('pulls no more from the producer while the medium takes nothing', { timeout: LIMIT_MS }, async () => {
  const folder = await temporaryFolder()
  const length = 64 * MIB
  const given = { folder, length, stallAfter: 8 * MIB }
  const child = new Child('stalled-sink.mjs', { given, limitMs: LIMIT_MS, node: [HEAP] })
  const said = await child.next<{ aheadMiB: number; length: number; pulled: number; written: number }>()
  await child.finish()
  report(`stalled medium: ${said.aheadMiB} MiB ahead`)
  expect(said).toMatchObject({ length, pulled: length, written: length })
  expect(said.aheadMiB).toBeLessThanOrEqual(AHEAD_MIB_MAX)
})
