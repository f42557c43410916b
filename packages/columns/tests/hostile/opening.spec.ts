/** Pools that contradict themselves where a store begins: each ends in an error that says so, in time, and lets itself be closed. */
import { readdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { openStore } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { createMedium, mem } from '@alkblobs/engine-mem'
import { sqlite } from '@alkblobs/engine-sqlite'
import { describe, expect, it } from 'vitest'
import { atEnd, failureOf, opened, tamper, temporaryFolder } from '../bad-input/stores.js'
import { hostilePool } from './pools.js'

/** How a call ends; a call that does not is an end too. */
async function endOf(
  call: () => Promise<unknown>,
  limitMs = 5_000
): Promise<Record<string, unknown> | 'done' | 'hangs'> {
  const late = new Promise<'hangs'>(resolve => setTimeout(() => resolve('hangs'), limitMs).unref())
  return await Promise.race([failureOf(call).then(error => error ?? 'done'), late])
}

describe('a pool without the row that says what it is', () => {
  it.each([false, true])('ends every call with an error or an empty answer (with a large tier: %s)', async hasLarge => {
    const pool = hostilePool()
    const options = { kv: sqlite({ file: pool.file }), ...(hasLarge && { large: local({ root: pool.root }) }) }
    const before = await openStore({ ...options, threshold: 10 })
    const { key } = await before.put('short')
    if (hasLarge) await before.put('longer than the threshold')
    await before.close()
    tamper(pool.file, 'DELETE FROM meta')
    const store = await openStore({ ...options, threshold: 10 }).catch((error: Error) => error)
    if (store instanceof Error) {
      expect(store).toMatchObject({ code: expect.stringMatching(/^ERR_BLOB_(POOL_REFUSED|ENGINE)$/) })
      return
    }
    atEnd(() => store.close().catch(() => {}))
    const typed = { code: expect.stringMatching(/^ERR_BLOB_(POOL_REFUSED|ENGINE)$/) }
    expect(await endOf(() => store.put('new'))).toMatchObject(typed)
    for (const call of [() => store.sweep(), () => store.maintain(), () => store.verify(), () => store.pin(key)]) {
      const end = await endOf(call)
      if (end !== 'done') expect(end).toMatchObject(typed)
    }
    expect(await endOf(() => store.close())).toBe('done')
  })
})

describe('a folder with a lock file that', () => {
  it.each<[string, Record<string, string>]>([
    ['has the highest number there is', { 'lock.999999999999999': '{}', 'lock.999999999999999.released': '' }],
    [
      'has a number beyond all numbers',
      { 'lock.99999999999999999999999': '{}', 'lock.99999999999999999999999.released': '' }
    ],
    ['says nothing', { 'lock.7': '' }],
    ['says null', { 'lock.7': 'null' }],
    ['says a list', { 'lock.7': '[]' }],
    ['says half an object', { 'lock.7': '{"pid":' }],
    ['names a process of no number', { 'lock.7': '{"pid":-1,"host":"x"}' }]
  ])('%s is held or passed over, at once and without a turn in a circle', async (_, files) => {
    const root = join(temporaryFolder(), 'large')
    const open = () =>
      openStore({
        kv: mem({ medium: createMedium() }),
        large: local({ root }),
        threshold: 1,
        operationTimeoutMs: 2_000
      })
    const before = await open()
    const { key } = await before.put('long enough')
    await before.close()
    for (const name of readdirSync(root)) if (name.startsWith('lock.')) rmSync(join(root, name))
    for (const [name, content] of Object.entries(files)) writeFileSync(join(root, name), content, { mode: 0o600 })
    const store = await open()
    atEnd(() => store.close().catch(() => {}))
    const end = await endOf(() => store.put('another one'), 1_500)
    if (end !== 'done') expect(end).toMatchObject({ code: 'ERR_BLOB_POOL_REFUSED', reason: 'held' })
    // Nothing goes on by itself after the answer.
    const cpu = process.cpuUsage()
    await new Promise(resolve => setTimeout(resolve, 100))
    expect(process.cpuUsage(cpu).user).toBeLessThan(80_000)
    if (end === 'done') expect(await store.has(key)).toBe(true)
    expect(await endOf(() => store.close())).toBe('done')
  })
})

describe('a database inside the folder of the large tier', () => {
  it('is refused with the advice to keep them apart', async () => {
    const folder = join(temporaryFolder(), 'pool')
    const options = { kv: sqlite({ file: join(folder, 'kv.db') }), large: local({ root: folder }), threshold: 10 }
    const store = await opened(options)
    const first = await failureOf(() => store.put('longer than the threshold'))
    expect(first).toMatchObject({ code: 'ERR_BLOB_POOL_REFUSED', reason: 'foreign' })
    await store.close()
    const again = await failureOf(() => openStore(options))
    expect(again).toMatchObject({ code: 'ERR_BLOB_POOL_REFUSED', message: expect.stringMatching(/folder of its own/) })
  })
})
