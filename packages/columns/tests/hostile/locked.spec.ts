/** Somebody else holds a transaction on the catalog and does not let go: reads go on, everything else ends in time, and it all works afterwards. */
import { createRequire } from 'node:module'
import { expect, it } from 'vitest'
import { atEnd, failureOf } from '../bad-input/stores.js'
import { hostilePool } from './pools.js'

interface Database {
  exec(sql: string): void
  close(): void
}
const engine = createRequire(import.meta.url).resolve('@alkblobs/engine-sqlite')
const Driver = createRequire(engine)('better-sqlite3') as new (file: string) => Database

const LOCK_TIMEOUT_MS = 600

it.each(['IMMEDIATE', 'EXCLUSIVE'])(
  'a foreign %s transaction is waited for in time, and nobody waits for it in a blocked event loop',
  async mode => {
    const pool = hostilePool()
    const store = await pool.open({ lockTimeoutMs: LOCK_TIMEOUT_MS, operationTimeoutMs: 2_000 })
    store.protect({ name: 'nothing', live: () => [] })
    const kept = await store.put(Buffer.alloc(1_000, 1))
    const loose = await store.put('small')
    await loose.release()
    await store.maintain()
    const foreign = new Driver(pool.file)
    atEnd(() => foreign.close())
    foreign.exec(`BEGIN ${mode}`)
    let longestGapMs = 0
    let last = performance.now()
    const beat = setInterval(() => {
      const now = performance.now()
      longestGapMs = Math.max(longestGapMs, now - last)
      last = now
    }, 5)
    const busy = { code: 'ERR_BLOB_ENGINE', kind: expect.stringMatching(/^(conflict|transient|outcome-unknown)$/) }
    const writes = [
      () => store.put('another'),
      () => store.put(Buffer.alloc(2_000, 2)),
      () => store.delete(loose.key),
      () => store.pin(loose.key),
      () => store.maintain()
    ]
    const ends = await Promise.all([
      ...writes.map(failureOf),
      store.get(kept.key).then(async blob => (await blob?.bytes())?.length),
      store.has(loose.key)
    ])
    clearInterval(beat)
    // The last gap may not have ended in a beat.
    longestGapMs = Math.max(longestGapMs, performance.now() - last)
    for (const end of ends.slice(0, writes.length)) expect(end).toMatchObject(busy)
    expect(ends.slice(writes.length)).toEqual([1_000, true])
    // A blocked loop would stand still for a whole lock timeout.
    expect(longestGapMs).toBeLessThan(LOCK_TIMEOUT_MS / 2)
    foreign.exec('ROLLBACK')
    expect((await store.put('another')).created).toBe(true)
    expect(await store.delete(loose.key)).toBe(true)
    expect(await store.sweep()).not.toHaveProperty('aborted')
    expect(await store.usage()).toMatchObject({ stages: 0, trash: 0 })
  }
)

// O13: what an application's open transaction has written is not there yet for anybody else.
it('a pin that an open transaction commits in the middle of a sweep keeps its candidate, and costs no other', async () => {
  const pool = hostilePool()
  const store = await pool.open({ lockTimeoutMs: 5_000 })
  store.protect({ name: 'nothing', live: () => [] })
  const puts = Array.from({ length: 300 }, async (_, at) => {
    const receipt = await store.put(`${at}`)
    await receipt.release()
    return receipt.key
  })
  const keys = (await Promise.all(puts)).sort()
  expect(await store.sweep()).toMatchObject({ candidatesStaged: 300 })
  const pinned = keys[150] ?? ''
  const foreign = new Driver(pool.file)
  atEnd(() => foreign.close())
  foreign.exec('BEGIN IMMEDIATE')
  const digest = pinned.slice(pinned.indexOf(':') + 1)
  foreign.exec(`INSERT INTO gc_pins VALUES (x'${digest}', 'somebody else', 1, ${Date.now() + 60_000})`)
  const sweeping = store.sweep()
  await new Promise(resolve => setTimeout(resolve, 150))
  expect(await store.has(keys[0] ?? '')).toBe(true)
  foreign.exec('COMMIT')
  const report = await sweeping
  expect(report).not.toHaveProperty('aborted')
  expect(report).toMatchObject({ deleted: 299, cancelledByArbitration: 1, failed: [] })
  expect([...(await store.hasMany(keys))].filter(([, is]) => is).map(([key]) => key)).toEqual([pinned])
})
