// Sweeps of large pools against a source that enumerates its keys: exact counts, memory that does not grow with the pool, and
// the time per entry, printed.
import { join } from 'node:path'
import { expect, it } from 'vitest'
import { Agent, Child, isLong, report, temporaryFolder } from './children.js'

const LIMIT_MS = isLong ? 900_000 : 180_000
const OVER_IDLE_MIB_MAX = 100

interface Scaled {
  readonly reports: readonly { readonly durationMs: number; readonly deleted: number }[]
  readonly usage: object
  readonly idleMiB: number
  readonly overIdleMiB: number
}

async function sweepIn(folder: string, given: object): Promise<Scaled> {
  const child = new Child('scale-sweeper.mjs', { given: { folder, ...given }, limitMs: LIMIT_MS })
  const said = await child.next<Scaled>()
  await child.finish()
  return said
}

function reportCost(what: string, entries: number, { reports, idleMiB, overIdleMiB }: Scaled): void {
  const times = reports.map(({ durationMs }) => `${((durationMs * 1_000) / entries).toFixed(1)} µs`)
  const memory = `${overIdleMiB.toFixed(0)} MiB over ${idleMiB.toFixed(0)} MiB idle`
  report(`${what} of ${entries} entries: ${times.join(' and ')} per entry, ${memory}`)
}

// O32: more keys than any statement takes as parameters, and one tenth of them dead. G6.
it(`sweeps exactly the dead tenth of ${isLong ? '100,000' : '20,000'} entries`, { timeout: LIMIT_MS }, async () => {
  const entries = isLong ? 100_000 : 20_000
  const live = entries * 0.9
  const dead = entries - live
  const folder = await temporaryFolder()
  const file = join(folder, 'keys')
  const filler = new Agent(folder, LIMIT_MS)
  await filler.ask('open')
  const start = performance.now()
  for (let from = 0; from < entries; from += 10_000) {
    const contents = { prefix: 'entry ', from, to: from + 10_000, lengths: [100] }
    await filler.ask('fill', { contents, lanes: 256, file })
  }
  report(`filled with ${entries} puts, ${Math.round(entries / ((performance.now() - start) / 1_000))} per second`)
  await filler.finish()

  const swept = await sweepIn(folder, { file, live, sweeps: 2 })
  reportCost('staging and removing sweep', entries, swept)
  const [staging, removing] = swept.reports
  const nothing = { alreadyStaged: 0, cancelledByArbitration: 0, failed: [] }
  expect(staging).toMatchObject({ scanned: entries, live, candidatesStaged: dead, deleted: 0, ...nothing })
  expect(removing).toMatchObject({ scanned: live, live, candidatesStaged: 0, deleted: dead, ...nothing })
  expect(swept.usage).toMatchObject({ entries: live, window: 0, pins: 0 })
  expect(swept.overIdleMiB).toBeLessThan(OVER_IDLE_MIB_MAX)
})

// O32, and the cost of `sweep.md`: a dry run over rows that were written past the store.
it(`plans a sweep of ${isLong ? '1,000,000' : '100,000'} entries`, { timeout: LIMIT_MS }, async () => {
  const entries = isLong ? 1_000_000 : 100_000
  const live = entries * 0.9
  const folder = await temporaryFolder()
  const file = join(folder, 'keys')
  const rows = new Child('rows.mjs', { given: { folder, file, count: entries }, limitMs: LIMIT_MS })
  expect(await rows.next()).toEqual({ rows: entries })
  await rows.finish()

  const planned = await sweepIn(folder, { file, live, sweeps: 1, options: { dryRun: true } })
  reportCost('planned sweep', entries, planned)
  expect(planned.reports).toMatchObject([{ scanned: entries, live, candidatesStaged: entries - live, deleted: 0 }])
  expect(planned.usage).toMatchObject({ entries, window: 0 })
  expect(planned.overIdleMiB).toBeLessThan(OVER_IDLE_MIB_MAX)
})
