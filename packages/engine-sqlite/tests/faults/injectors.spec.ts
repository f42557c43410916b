// Every call of the facade on SQLite alone fails, and what the driver throws has its name.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore } from '@alkblobs/core'
import {
  away,
  contestedSurfaces,
  everyFailure,
  FaultPlan,
  faulty,
  fullDisk,
  isInjected,
  outOfDescriptors,
  partsOf
} from '@alkblobs/faults'
import '@alkblobs/faults/vitest'
import { expect, it, onTestFinished } from 'vitest'
import { sqlite } from '../../src/index.js'

const context = { algorithm: 'sha256', lockTimeoutMs: 1_000, connectTimeoutMs: 1_000 } as const

function file(): string {
  const folder = mkdtempSync(join(tmpdir(), 'alkblobs-faults-'))
  onTestFinished(() => rmSync(folder, { recursive: true, force: true }))
  return join(folder, 'kv.db')
}

it('offers what the list of surfaces says of it, and names what its driver throws', async () => {
  const engine = await sqlite({ file: file() }).open(context)
  expect(partsOf(engine)).toEqual(contestedSurfaces.engines.sqlite?.parts)
  expect([fullDisk('sqlite'), outOfDescriptors('sqlite'), away('sqlite')].map(engine.classify)).toEqual([
    'full',
    'exhausted',
    'transient'
  ])
  await engine.close()
})

it('shows the error of the driver as the cause of the one that the user gets, whichever call it was', async () => {
  const plan = new FaultPlan()
  const store = await openStore({
    kv: faulty(sqlite({ file: file(), durability: 'os' }), plan),
    threshold: 100,
    windowDelayMs: 0
  })
  onTestFinished(() => store.close())
  store.protect({ name: 'nothing', live: () => [] })
  let failures = 0
  await everyFailure({ plan, how: { kind: 'fail', error: () => fullDisk('sqlite') } }, async ({ call, heal }) => {
    const error = await store.put(`content ${call}`).then(
      receipt => receipt.release(),
      (thrown: unknown) => thrown
    )
    heal()
    if (error === undefined) return
    expect(error).toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'full', transient: false })
    expect(isInjected(error)).toBe(true)
    failures += 1
  })
  expect(failures).toBeGreaterThan(0)
})
