// Ten thousand small contents: put, read, put again and swept, exactly and at a rate that is printed.
import { expect, it } from 'vitest'
import { Child, report, temporaryFolder } from './children.js'

const LIMIT_MS = 120_000
const COUNT = 10_000

interface Timed<Result> {
  readonly result: Result
  readonly perSecond: number
}

// Invariant 1 by the thousand; G6: the counts of two sweeps over half of them.
it('keeps 10,000 small contents through concurrent puts, reads and deduplicating puts, and sweeps half of them away', {
  timeout: LIMIT_MS
}, async () => {
  const folder = await temporaryFolder()
  // One in sixteen is longer than this and becomes a file.
  const given = { folder, count: COUNT, lanes: 64, threshold: 7_684 }
  const child = new Child('small-files.mjs', { given, limitMs: LIMIT_MS })
  const said = await child.next<{
    bytes: number
    distinct: number
    put: Timed<number>
    read: Timed<number>
    again: Timed<number>
    staging: Timed<object>
    removing: Timed<object>
    usage: { perTier: { large: { entries: number } } }
    survivors: number
    clean: boolean
    files: object
  }>()
  await child.finish()
  const { put, read, again, staging, removing, usage, bytes } = said
  const rates = [put, read, again, staging, removing].map(({ perSecond }) => perSecond)
  report(`small files, ${bytes} bytes, per second: put, read, put again, stage, remove = ${rates.join(', ')}`)
  expect(said).toMatchObject({ distinct: COUNT, survivors: COUNT, clean: true })
  expect([put.result, read.result, again.result]).toEqual([COUNT, COUNT, 0])
  const half = COUNT / 2
  expect(staging.result).toMatchObject({ scanned: COUNT, live: half, candidatesStaged: half, deleted: 0, failed: [] })
  expect(removing.result).toMatchObject({ scanned: half, live: half, deleted: half, cancelledByArbitration: 0 })
  expect(usage).toMatchObject({ entries: half, window: 0, stages: 0, trash: 0, pins: 0 })
  expect(usage.perTier.large.entries).toBeGreaterThan(100)
  expect(said.files).toEqual({ bodies: usage.perTier.large.entries, stages: 0 })
})
