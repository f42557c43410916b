/** The pins of one store against the rows of its catalog: what a generation names, what is renewed, what is lost. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { PinId, RenewRequest } from '../src/engine.js'
import { PAGE_SIZE } from '../src/limits.js'
import { bytes, opened, rejection, turn } from './opened.js'
import type { Scripted } from './scripted-engine.js'

const source = { name: 'app', live: () => [] }

/** Timers that only a test moves. The clock of the engine calls stays real. */
function frozenTimers(): void {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval', 'setTimeout', 'clearTimeout'] })
  onTestFinished(() => void vi.useRealTimers())
}

/** A renewal that nobody has to wait for: a delete renews first. */
function renewed(store: Awaited<ReturnType<typeof opened>>['store']) {
  return store.delete(`blake3:${'f'.repeat(64)}`)
}

function generations(engine: Scripted): number[] {
  return [...engine.pins.values()].map(({ generation }) => generation)
}

describe('model schedule 4: a release and a new put of the same key', () => {
  it('the put commits before the release arrives: its row stays', async () => {
    const { store, engine } = await opened()
    const first = await store.put('a')
    const gate = engine.gate('release')
    await first.release()
    const deletes = renewed(store)
    await gate.reached
    const second = await store.put('a')
    gate.open()
    await deletes
    expect(engine.pins.size).toBe(1)
    expect(generations(engine)).toEqual([2])
    expect(second.pin?.held).toBe(true)
    expect(await rejection(store.delete(second.key))).toMatchObject({ reason: 'pinned' })
  })

  it('the release arrives first: the put makes a row of its own', async () => {
    const { store, engine } = await opened()
    const first = await store.put('a')
    const gate = engine.gate('publish')
    const put = store.put('a')
    await gate.reached
    await first.release()
    await renewed(store)
    gate.open()
    const second = await put
    expect(generations(engine)).toEqual([2])
    await second.release()
    await renewed(store)
    expect(engine.pins.size).toBe(0)
  })

  it('a put under way keeps the row of one released meanwhile', async () => {
    const { store, engine } = await opened()
    const first = await store.put('a')
    const gate = engine.gateAfter('publish')
    const put = store.put('a')
    await gate.reached
    await turn()
    await first.release()
    await renewed(store)
    expect(engine.pins.size).toBe(1)
    gate.open()
    expect((await put).pin?.held).toBe(true)
    expect(engine.pins.size).toBe(1)
  })

  it('a release names the highest generation that was ever sent', async () => {
    const { store, engine } = await opened()
    const first = await store.put('a')
    engine.failAfter('publish')
    await rejection(store.put('a'))
    expect(generations(engine)).toEqual([2])
    await first.release()
    await renewed(store)
    expect(engine.pins.size).toBe(0)
  })

  it('a put whose outcome is unknown, and that wrote its row, leaves none behind', async () => {
    const { store, engine } = await opened()
    engine.failAfter('publish')
    await rejection(store.put('a'))
    expect(engine.pins.size).toBe(1)
    expect(store.pins()).toEqual([])
    await renewed(store)
    expect(engine.pins.size).toBe(0)
  })
})

describe('pins', () => {
  it('of one key share a row, by count; the last release ends it, each is idempotent', async () => {
    const { store, engine } = await opened()
    const { key, ...first } = await store.put('a')
    const [second, third] = [await store.pin(key), await store.put('a')]
    expect(store.pins()).toEqual([{ key, count: 3 }])
    expect(engine.pins.size).toBe(1)
    await Promise.all([third.release(), third.release(), third.pin?.release()])
    await second?.release()
    expect(store.pins()).toEqual([{ key, count: 1 }])
    await renewed(store)
    expect(engine.pins.size).toBe(1)
    await first.pin?.release()
    expect(store.pins()).toEqual([])
    await renewed(store)
    expect(engine.pins.size).toBe(0)
    expect(engine.count('release')).toBe(1)
  })

  it('of an absent key are none', async () => {
    const { store, engine } = await opened()
    await store.put('a')
    expect(await store.pin(`blake3:${'0'.repeat(64)}`)).toBeUndefined()
    expect(store.pins().length).toBe(1)
    expect(engine.pins.size).toBe(1)
  })

  it('released together end in one statement that names each key once, within the delay', async () => {
    const { store, engine } = await opened()
    const receipts = await Promise.all([...Array(5).keys()].map(i => store.put(`${i}`)))
    const again = await store.put('0')
    frozenTimers()
    for (const receipt of [...receipts, again]) await receipt.release()
    expect(engine.count('release')).toBe(0)
    await vi.advanceTimersByTimeAsync(50)
    expect(engine.count('release')).toBe(1)
    const rows = engine.given.find(({ step }) => step === 'release')?.args[0] as PinId[]
    expect(new Set(rows.map(({ key }) => key)).size).toBe(5)
    expect(rows.length).toBe(5)
    expect(engine.pins.size).toBe(0)
  })

  it('of one key, released twice before the statement, are named once, by the later generation', async () => {
    const { store, engine } = await opened()
    await (await store.put('a')).release()
    await (await store.put('a')).release()
    await renewed(store)
    const rows = engine.given.filter(({ step }) => step === 'release').flatMap(({ args }) => args[0] as PinId[])
    expect(rows.map(({ pin }) => pin.generation)).toEqual([2])
    expect(engine.pins.size).toBe(0)
  })

  it('whose release fails are released by the next attempt', async () => {
    const { store, engine } = await opened()
    const receipt = await store.put('a')
    engine.failBefore('release')
    await receipt.release()
    await renewed(store).catch(() => {})
    expect(engine.pins.size).toBe(1)
    await renewed(store)
    expect(engine.pins.size).toBe(0)
  })

  it("are gone before this store's own delete, sweep and close begin", async () => {
    for (const act of ['delete', 'sweep', 'close'] as const) {
      const { store, engine } = await opened()
      store.protect(source)
      const receipt = await store.put('a')
      await receipt.release()
      if (act === 'delete') expect(await store.delete(receipt.key)).toBe(true)
      else if (act === 'sweep') expect(await store.sweep()).toMatchObject({ candidatesStaged: 1 })
      else await store.close()
      expect(engine.pins.size, act).toBe(0)
    }
  })

  it('may be released after the store has closed', async () => {
    const { store } = await opened()
    const receipt = await store.put('a')
    await store.close()
    await receipt.release()
    await receipt.pin?.release()
  })

  it('are released by `await using`', async () => {
    const { store } = await opened()
    {
      await using receipt = await store.put('a')
      await using pin = await store.pin(receipt.key)
      expect(pin?.held).toBe(true)
    }
    expect(store.pins()).toEqual([])
  })
})

describe('a renewal', () => {
  it('moves every row and stage of the store, a page at a time, in the third part of the shorter life', async () => {
    frozenTimers()
    const { store, engine } = await opened({ pinTtlMs: 3_000, stageTtlMs: 30_000, threshold: 100 })
    // Kept to the end: a receipt that is collected lets its pin lapse, and takes a fresh one to do so.
    const receipts = await Promise.all([...Array(PAGE_SIZE + 1).keys()].map(i => store.put(`${i}`)))
    engine.clock = 999
    await vi.advanceTimersByTimeAsync(999)
    expect(engine.count('renew')).toBe(0)
    engine.clock = 1_000
    await vi.advanceTimersByTimeAsync(1)
    // Where the puts have used up the turn, the answer of the first page comes in the next one.
    await new Promise(setImmediate)
    expect(engine.count('renew')).toBe(2)
    const requests = engine.given.filter(({ step }) => step === 'renew').map(({ args }) => args[0] as RenewRequest)
    expect(requests.map(({ pins }) => pins.length)).toEqual([PAGE_SIZE, 1])
    expect([...engine.pins.values()].every(({ expiresAt }) => expiresAt === 4_000)).toBe(true)
    expect(receipts.every(({ pin }) => pin?.held)).toBe(true)
  })

  it('that fails is tried again at the next tick, and stops when nothing is held', async () => {
    frozenTimers()
    const { store, engine } = await opened({ pinTtlMs: 3_000 })
    const receipt = await store.put('a')
    engine.failBefore('renew')
    await vi.advanceTimersByTimeAsync(1_000)
    expect(receipt.pin?.held).toBe(true)
    await vi.advanceTimersByTimeAsync(1_000)
    expect(engine.count('renew')).toBe(2)
    expect(receipt.pin?.held).toBe(true)
    await receipt.release()
    await vi.advanceTimersByTimeAsync(10_000)
    expect(engine.count('renew')).toBe(2)
  })

  it('that finds no row tells every holder, once, and a new put protects again', async () => {
    const { store, engine } = await opened()
    const receipt = await store.put('a')
    const pin = await store.pin(receipt.key)
    const fired: unknown[] = []
    for (const held of [receipt.pin, pin]) held?.signal.addEventListener('abort', () => fired.push(held.signal.reason))
    engine.pins.clear()
    await renewed(store)
    expect([receipt.pin?.held, pin?.held, fired.length]).toEqual([false, false, 2])
    expect(fired[0]).toBeInstanceOf(Error)
    expect(store.pins()).toEqual([])
    const again = await store.put('a')
    expect(again.pin?.held).toBe(true)
    await receipt.release()
    await pin?.release()
    await renewed(store)
    expect(again.pin?.held).toBe(true)
    expect(engine.pins.size).toBe(1)
  })

  it('that is late does not lose what a put has confirmed meanwhile', async () => {
    const { store, engine } = await opened()
    const first = await store.put('a')
    engine.pins.clear()
    const gate = engine.gateAfter('renew')
    const renewing = renewed(store)
    await gate.reached
    const second = await store.put('a')
    gate.open()
    await renewing
    expect(second.pin?.held).toBe(true)
    expect(first.pin?.held).toBe(true)
    expect(engine.pins.size).toBe(1)
  })

  it("does not make a lost row of a put under way anybody else's loss", async () => {
    const { store, engine } = await opened()
    const first = await store.put('a')
    engine.pins.clear()
    const gate = engine.gate('publish')
    const put = store.put('a')
    await gate.reached
    await renewed(store)
    expect(first.pin?.held).toBe(false)
    gate.open()
    const second = await put
    expect(second.pin?.held).toBe(true)
    expect(store.pins()).toEqual([{ key: second.key, count: 1 }])
    await second.release()
    await renewed(store)
    expect(engine.pins.size).toBe(0)
  })

  it('is never fired for a release', async () => {
    const { store } = await opened()
    const receipt = await store.put(bytes(3))
    const fired = vi.fn()
    receipt.pin?.signal.addEventListener('abort', fired)
    await receipt.release()
    await store.close()
    expect(fired).not.toHaveBeenCalled()
    expect(receipt.pin?.held).toBe(false)
  })
})
