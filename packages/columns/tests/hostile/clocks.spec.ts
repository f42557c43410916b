/** The clock of the machine jumps while a pool is in use: forward and back again, and back. */
import { setTimeout as passed } from 'node:timers/promises'
import { expect, it, onTestFinished, vi } from 'vitest'
import { hostilePool } from './pools.js'

const DAY_MS = 24 * 3_600_000
/** What core accepts as the longest delay: whoever waits longer waits for a clock that was wrong. */
const LONGEST_MS = 2 ** 31

const large = (seed: number) => Buffer.alloc(1_000, seed)
const nothing = { name: 'nothing', live: () => [] }

/** Moves the clock that the process reads by so many milliseconds from what it really is. */
function jump(byMs: number): void {
  vi.spyOn(Date, 'now').mockImplementation(() => realNow() + byMs)
}
const realNow = Date.now.bind(Date)
const correct = () => void vi.restoreAllMocks()

it('what was written while the clock was ten years ahead does not wait for ten years', async () => {
  onTestFinished(correct)
  const pool = hostilePool()
  const abandoned = await pool.open()
  abandoned.protect(nothing)
  const staged = await abandoned.put(large(1))
  const deleted = await abandoned.put(large(2))
  await staged.release()
  await deleted.release()
  await abandoned.maintain()
  jump(3_650 * DAY_MS)
  expect(await abandoned.sweep()).toMatchObject({ candidatesStaged: 2 })
  // What a process leaves behind that dies while the clock is wrong: a pin, a stage and trash.
  const { key } = await abandoned.put(large(3))
  const writer = abandoned.writer()
  await writer.write(Buffer.alloc(3_000_000, 4))
  expect(await abandoned.delete(deleted.key)).toBe(true)
  correct()

  const store = await pool.open()
  store.protect(nothing)
  await store.maintain()
  const why = await store.why(key)
  for (const { expiresInMs } of why.pins) expect(expiresInMs).toBeLessThanOrEqual(LONGEST_MS)
  for (let time = 0; time < 3 && (await store.has(staged.key)); time += 1) {
    await passed(2)
    expect(await store.sweep()).not.toHaveProperty('aborted')
  }
  expect(await store.has(staged.key)).toBe(false)
  expect(await store.has(key)).toBe(true)
  expect((await store.usage()).window).toBe(0)
})

it('a clock that goes back removes nothing that is protected, and what was put stays', async () => {
  onTestFinished(correct)
  const pool = hostilePool()
  const store = await pool.open({ windowDelayMs: 60_000 })
  store.protect(nothing)
  const pinned = await store.put(large(1))
  const loose = await store.put(large(2))
  await loose.release()
  expect(await store.sweep()).toMatchObject({ candidatesStaged: 1, live: 1 })
  jump(-3_650 * DAY_MS)
  for (let time = 0; time < 2; time += 1) {
    expect(await store.sweep()).toMatchObject({ deleted: 0, failed: [] })
    expect(await store.maintain()).toMatchObject({ pinsReaped: 0 })
  }
  expect([await store.has(pinned.key), await store.has(loose.key)]).toEqual([true, true])
  expect(pinned.pin?.held).toBe(true)
  const put = await store.put(large(3))
  expect((await (await store.get(put.key))?.bytes())?.length).toBe(1_000)
  correct()
  // By the clock the candidate has waited for years now; what is held counts from no clock.
  expect(await store.sweep()).toMatchObject({ failed: [] })
  for (const { key, pin } of [pinned, put]) expect([await store.has(key), pin?.held]).toEqual([true, true])
  expect(await store.verify()).toMatchObject({ clean: true })
})

it('a jump forward past every expiry costs a live holder neither its pin nor its stage', async () => {
  onTestFinished(correct)
  const pool = hostilePool()
  const store = await pool.open()
  store.protect(nothing)
  const pinned = await store.put(large(1))
  jump(2 * DAY_MS)
  // A removal of its own renews what the store holds before it begins.
  expect(await store.sweep()).toMatchObject({ candidatesStaged: 0, deleted: 0 })
  expect(await store.sweep()).toMatchObject({ deleted: 0 })
  expect(pinned.pin?.held).toBe(true)
  expect((await (await store.get(pinned.key))?.bytes())?.length).toBe(1_000)
})
