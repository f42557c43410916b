/** The put path to its edges: what is decided before the first byte, what a put trusts and heals, what it drops and when. */
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { EngineFault, type Lease, type Locator, type Place } from '../src/engine.js'
import type { BlobKey, Store } from '../src/index.js'
import { DROP_BATCH, DROP_RETRY_MS, LEASE_WAITS_MS, WINDOW_LENGTH } from '../src/limits.js'
import { bytes, NOTHING, opened, rejection, THRESHOLD, turn } from './opened.js'
import { Scripted } from './scripted-engine.js'

/** A producer that counts how often it is asked. */
function counted(...chunks: readonly Uint8Array[]) {
  const made = { asked: 0, returned: 0, content: undefined as unknown as AsyncIterable<Uint8Array> }
  made.content = {
    [Symbol.asyncIterator]: () => {
      const rest = [...chunks]
      return {
        next: async () => {
          made.asked++
          const value = rest.shift()
          return value === undefined ? { done: true, value } : { done: false, value }
        },
        return: async () => {
          made.returned++
          return { done: true, value: undefined }
        }
      }
    }
  }
  return made
}

function streamed(...chunks: readonly Uint8Array[]): AsyncIterable<Uint8Array> {
  return counted(...chunks).content
}

describe('before its first byte', () => {
  it('a put of a declared length that is too long, or has no tier, reads nothing', async () => {
    const { store, engine } = await opened()
    const long = counted(bytes(10))
    const error = await rejection(store.put(long.content, { length: 101, maxLength: 100 }))
    expect(error).toMatchObject({ code: 'ERR_BLOB_TOO_LARGE', lengthMax: 100 })
    expect(error.message).toMatch(/maxLength/)
    expect([long.asked, engine.count('stage')]).toEqual([0, 0])

    const small = await opened({ kvOnly: true })
    const spilling = counted(bytes(10))
    const refused = await rejection(small.store.put(spilling.content, { length: THRESHOLD + 1 }))
    expect(refused).toMatchObject({ code: 'ERR_BLOB_TOO_LARGE', lengthMax: THRESHOLD })
    expect(refused.message).toMatch(/large tier/)
    expect(spilling.asked).toBe(0)
  })

  it('a writer of such a length is not opened, and takes no place', async () => {
    const { store } = await opened({ putsMax: 1 })
    expect(() => store.writer({ length: 101, maxLength: 100 })).toThrow(
      expect.objectContaining({ code: 'ERR_BLOB_TOO_LARGE' })
    )
    await store.writer({ length: 100, maxLength: 100 }).discard()
  })

  it('a put of exactly the longest length goes through, as bytes, stream and writer, declared or not', async () => {
    for (const options of [{ maxLength: 100 }, { maxLength: 100, length: 100 }]) {
      const { store } = await opened()
      const writer = store.writer(options)
      await writer.write(bytes(60))
      await writer.write(bytes(100).subarray(60))
      const receipts = [
        await store.put(bytes(100), options),
        await store.put(streamed(bytes(100)), options),
        await writer.commit()
      ]
      expect(receipts.map(({ length, created }) => [length, created])).toEqual([
        [100, true],
        [100, false],
        [100, false]
      ])
    }
  })

  it('content longer than it may be is refused at the chunk that is too much, with both lengths', async () => {
    const { store, engine } = await opened()
    const over = counted(bytes(60), bytes(41), bytes(60))
    expect(await rejection(store.put(over.content, { maxLength: 100 }))).toMatchObject({
      code: 'ERR_BLOB_TOO_LARGE',
      lengthMax: 100
    })
    expect([over.asked, over.returned]).toEqual([2, 1])
    const more = await rejection(store.put(streamed(bytes(60), bytes(41)), { length: 100 }))
    expect(more).toMatchObject({ code: 'ERR_BLOB_LENGTH_MISMATCH', declared: 100, seen: 101 })
    const less = await rejection(store.put(streamed(bytes(60), bytes(39)), { length: 100 }))
    expect(less).toMatchObject({ code: 'ERR_BLOB_LENGTH_MISMATCH', declared: 100, seen: 99 })
    expect(engine.residue).toEqual(NOTHING)
  })
})

describe('while it is written', () => {
  it('a put tells how far it is, after each chunk, and once for bytes at hand', async () => {
    const { store } = await opened()
    const told: number[] = []
    const onProgress = ({ bytes }: { readonly bytes: number }) => void told.push(bytes)
    await store.put(streamed(bytes(5), bytes(0), bytes(7)), { onProgress })
    expect(told.splice(0)).toEqual([5, 12])
    await store.put(bytes(12), { onProgress })
    expect(told.splice(0)).toEqual([12])
    await store.put(streamed(bytes(60), bytes(40)), { onProgress })
    expect(told.splice(0)).toEqual([60, 100])
    await store.put(bytes(99), { onProgress })
    expect(told.splice(0)).toEqual([99])
    await store.put(bytes(99), { onProgress })
    expect(told.splice(0)).toEqual([99])
  })

  it('large bytes that are there already leave no pin when the progress callback throws', async () => {
    const { store } = await opened()
    await (await store.put(bytes(100))).release()
    const stop = new Error('no more')
    const put = store.put(bytes(100), {
      onProgress: () => {
        throw stop
      }
    })
    expect(await rejection(put)).toBe(stop)
    expect(store.pins()).toEqual([])
  })

  it('a declared length decides the tier at the first chunk, and an undeclared one when it is passed', async () => {
    const { store, engine } = await opened()
    const stepsAt: Record<string, number> = {}
    const source = async function* (name: string, ...chunks: readonly Uint8Array[]) {
      for (const chunk of chunks) yield chunk
      stepsAt[name] = engine.count('stage')
    }
    await store.put(source('exact', bytes(THRESHOLD - 1), bytes(1)))
    expect([engine.count('stage'), engine.entries.size]).toEqual([0, 1])
    await store.put(source('declared', bytes(10, 1), bytes(7, 1)), { length: 17 })
    expect([stepsAt.declared, engine.count('stage')]).toEqual([1, 1])
    const early = store.writer({ length: 17 })
    await early.write(bytes(1))
    expect(engine.count('stage')).toBe(2)
    await early.discard()
    const late = store.writer()
    await late.write(bytes(THRESHOLD))
    expect(engine.count('stage')).toBe(2)
    await late.write(bytes(1))
    expect(engine.count('stage')).toBe(3)
    await late.discard()
    expect(engine.residue).toMatchObject({ stages: 0, halves: 0, bodies: 1, open: 0 })
  })

  it('chunks of any number gather to the same bytes, in either tier', async () => {
    const { store } = await opened()
    for (const [size, length] of [
      [1, THRESHOLD],
      [3, THRESHOLD],
      [7, 100],
      [100, 100]
    ] as const) {
      const whole = bytes(length, size)
      const parts = Array.from({ length: Math.ceil(length / size) }, (_, i) => whole.slice(i * size, (i + 1) * size))
      for (const options of [{}, { length }]) {
        const { key } = await store.put(streamed(...parts), options)
        expect(await (await store.get(key))?.bytes()).toEqual(whole)
      }
    }
  })

  it('a large body is written in whole windows and a rest, and hashed in its order', async () => {
    const { store, engine } = await opened()
    const content = bytes(2 * WINDOW_LENGTH + 10)
    for (const put of [
      () => store.put(content),
      () => store.put(streamed(content.slice(0, 10), content.slice(10)), { length: content.length })
    ]) {
      engine.entries.clear()
      engine.bodies.clear()
      engine.given.length = 0
      await put()
      const written = engine.given.filter(({ step }) => step === 'write').map(({ args }) => args[0])
      expect(written).toEqual([WINDOW_LENGTH, WINDOW_LENGTH, 10])
      expect([...engine.bodies.values()].map(body => Buffer.compare(body.bytes, content))).toEqual([0])
    }
    expect(engine.overlaps).toEqual([])
  })
})

/** What lies at a body's place is changed behind the store's back. */
function damage(engine: Scripted, change: (body: Uint8Array) => Uint8Array): void {
  for (const [locator, body] of engine.bodies) engine.bodies.set(locator, { ...body, bytes: change(body.bytes) })
}
const flipped = (body: Uint8Array) => body.map((byte, i) => (i === 50 ? byte ^ 1 : byte))

describe('an entry that is there', () => {
  it('and damaged where no length tells is trusted, unless the put asks to verify: then it is healed', async () => {
    for (const content of [() => bytes(100), () => streamed(bytes(100))]) {
      const { store, engine } = await opened()
      const { key } = await store.put(bytes(100))
      damage(engine, flipped)
      expect((await store.put(content())).created).toBe(false)
      expect((await store.put(content(), { verify: true })).created).toBe(true)
      expect(await (await store.get(key))?.bytes()).toEqual(bytes(100))
      expect((await store.put(content(), { verify: true })).created).toBe(false)
      expect(store.pins()).toEqual([{ key, count: 4 }])
      // The replaced body went before the put answered.
      expect(engine.residue).toEqual({ ...NOTHING, entries: 1, bodies: 1 })
    }
  })

  it('and damaged in the catalog is healed there', async () => {
    const { store, engine } = await opened()
    const { key } = await store.put('small')
    const found = engine.entries.get(key)
    if (found !== undefined) engine.entries.set(key, { ...found, body: Buffer.from('smell') })
    expect((await store.put('small')).created).toBe(false)
    expect((await store.put('small', { verify: true })).created).toBe(true)
    expect(await (await store.get(key))?.text()).toBe('small')
    expect(engine.count('drop')).toBe(0)
  })

  it('is not taken for damaged when it cannot be read: that is the failure, and no pin is left', async () => {
    const { store, engine } = await opened()
    await (await store.put(bytes(100))).release()
    engine.failBefore('body.read')
    const error = await rejection(store.put(bytes(100), { verify: true }))
    expect(error).toMatchObject({ code: 'ERR_BLOB_ENGINE' })
    expect([store.pins(), engine.bodies.size, engine.count('create')]).toEqual([[], 1, 1])
  })

  it('in whose place lies something else is healed; a failure of another kind is none of that', async () => {
    const { store, engine } = await opened()
    await (await store.put(bytes(100))).release()
    engine.failBefore('length', new EngineFault('denied', 'not yours'))
    expect(await rejection(store.put(bytes(100)))).toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'denied' })
    expect([store.pins(), engine.count('create')]).toEqual([[], 1])
    // Once for the bytes that look, once for the body that heals.
    for (let look = 0; look < 2; look++) engine.failBefore('length', new EngineFault('corrupt', 'a folder lies there'))
    expect((await store.put(bytes(100))).created).toBe(true)
    expect(engine.count('create')).toBe(2)
  })

  it('that breaks again and again is given up, with its key and what to do, and nothing is left behind', async () => {
    const { store, engine } = await opened()
    const { key, release } = await store.put(bytes(100)).then(receipt => ({
      key: receipt.key,
      release: () => receipt.release()
    }))
    await release()
    const { entry } = engine.entries.get(key) as { entry: { key: BlobKey; length: number; place: Place } }
    engine.every('length', async () => 7)
    engine.every('publish', async () => [{ outcome: 'existed', entry }])
    const before = engine.count('publish')
    const error = await rejection(store.put(streamed(bytes(100))))
    expect(error).toMatchObject({ name: 'PutError', code: 'ERR_BLOB_STAGE_LOST', key })
    expect(error.message).toMatch(/run verify/)
    expect(engine.count('publish') - before).toBe(8)
    const healings = engine.given.filter(({ step }) => step === 'publish').slice(before)
    expect(healings.map(({ args }) => (args[0] as { healing?: Place }[])[0]?.healing)).toEqual([
      undefined,
      ...Array(7).fill(entry.place)
    ])
    engine.heal()
    expect(store.pins()).toEqual([])
    expect(engine.residue).toEqual({ ...NOTHING, entries: 1, bodies: 1 })
  })

  it('is pinned with its length; one that is absent leaves no pin and no row', async () => {
    const { store, engine } = await opened()
    const { key } = await store.put(bytes(100))
    const pin = await store.pin(key)
    expect([pin?.key, pin?.length, pin?.held]).toEqual([key, 100, true])
    engine.failBefore('pin')
    expect(await rejection(store.pin(key))).toMatchObject({ code: 'ERR_BLOB_ENGINE', operation: 'pin' })
    expect(store.pins()).toEqual([{ key, count: 2 }])
  })

  it('is found by a put without a pin, which holds nothing', async () => {
    const engine = new Scripted()
    const { store } = await opened({ engine, windowDelayMs: 1_000 })
    for (const created of [true, false]) {
      const receipt = await store.put('a', { pin: false })
      expect([receipt.created, receipt.pin, store.pins(), engine.pins.size]).toEqual([created, undefined, [], 0])
    }
    const request = engine.given.find(({ step }) => step === 'publish')?.args[0] as object[]
    expect(request[0]).not.toHaveProperty('pin')
    engine.failBefore('publish')
    await rejection(store.put('b', { pin: false }))
    expect(store.pins()).toEqual([])
  })
})

describe('a put of what was expected', () => {
  it('goes through, as bytes, stream and writer, in either tier', async () => {
    const { store } = await opened()
    for (const content of [bytes(5), bytes(100)]) {
      const { key } = await store.put(content)
      const writer = store.writer({ expect: key })
      await writer.write(content)
      const receipts = [
        await store.put(content, { expect: key }),
        await store.put(streamed(content), { expect: key }),
        await writer.commit()
      ]
      expect(receipts.map(receipt => [receipt.key, receipt.created])).toEqual(Array(3).fill([key, false]))
    }
  })
})

describe('a stage that was lost', () => {
  it('leaves nothing of a body that was sealed and that nothing knows', async () => {
    const { store, engine } = await opened()
    engine.next('publish', async () => {
      engine.stages.clear()
      throw new Error('away')
    })
    expect(await rejection(store.put(streamed(bytes(100))))).toMatchObject({ operation: 'publish' })
    expect(engine.given.find(({ step }) => step === 'known')?.args[0]).toMatchObject([{ sealed: { length: 100 } }])
    expect([engine.count('writer.discard'), engine.residue]).toEqual([1, NOTHING])
  })

  it('fails the put with its key, and says what to do', async () => {
    const { store, engine } = await opened()
    engine.every('publish', async effect => {
      engine.stages.clear()
      return effect()
    })
    const error = await rejection(store.put(streamed(bytes(100))))
    expect(error).toMatchObject({ name: 'PutError', code: 'ERR_BLOB_STAGE_LOST' })
    expect(error.key).toMatch(/^blake3:/)
    expect(error.message).toMatch(/put the content again/)
    expect(store.pins()).toEqual([])
  })
})

const trash = (n: number, attempts = 0) => {
  const what = `body ${String(n).padStart(5, '0')}` as Locator
  return { what, key: undefined, length: 10, attempts }
}
function lay(engine: Scripted, rows: readonly ReturnType<typeof trash>[]): void {
  for (const row of rows) engine.trash.set(row.what, row)
}
const recordsOf = (engine: Scripted) =>
  engine.given.filter(({ step }) => step === 'dropped').flatMap(({ args }) => args[0] as object[])

describe('what lies in trash', () => {
  async function pool(): Promise<{ store: Store; engine: Scripted }> {
    const found = await opened()
    await found.store.put('a')
    return found
  }

  it('that cannot be dropped is put off twice as long each time, up to a day', async () => {
    const { store, engine } = await pool()
    const tries = [0, 1, 2, 10, 11, 60]
    lay(
      engine,
      tries.map((attempts, n) => trash(n, attempts))
    )
    const cause = new Error('busy')
    engine.lie('drop', (results: readonly object[]) => results.map(result => ({ ...result, error: cause })))
    const report = await store.maintain()
    expect(report).toMatchObject({ dropped: 0, bytesDropped: 0 })
    expect(report.failed).toEqual(tries.map((_, n) => ({ locator: trash(n).what, key: undefined, cause })))
    const { first, longest } = DROP_RETRY_MS
    expect(recordsOf(engine)).toEqual(
      [first, 2 * first, 4 * first, 1_024 * first, longest, longest].map((retryAfterMs, n) => ({
        what: trash(n).what,
        retryAfterMs
      }))
    )
  })

  it('holds nobody else up: what can be dropped is, and counted with its bytes', async () => {
    const { store, engine } = await pool()
    lay(engine, [trash(0), trash(1), { ...trash(2), length: undefined as never }])
    const cause = new Error('busy')
    engine.lie('drop', (results: readonly object[]) =>
      results.map((result, n) => (n === 0 ? { ...result, error: cause } : result))
    )
    expect(await store.maintain()).toMatchObject({ dropped: 2, bytesDropped: 10, failed: [{ cause }] })
    expect([...engine.trash.keys()]).toEqual([trash(0).what])
  })

  it('is dropped page by page, each after the one before it', async () => {
    const { store, engine } = await pool()
    const all = Array.from({ length: 2 * DROP_BATCH + 1 }, (_, n) => trash(n))
    lay(engine, all)
    engine.given.length = 0
    expect(await store.maintain()).toMatchObject({ dropped: all.length, bytesDropped: 10 * all.length })
    const pages = engine.given.filter(({ step }) => step === 'trash').map(({ args }) => args)
    expect(pages).toEqual([
      [undefined, DROP_BATCH],
      [all[DROP_BATCH - 1]?.what, DROP_BATCH],
      [all[2 * DROP_BATCH - 1]?.what, DROP_BATCH]
    ])
    // Few for each call: all of them have one deadline, and each waits for the disk.
    expect(engine.given.filter(({ step }) => step === 'drop').map(({ args }) => (args[0] as unknown[]).length)).toEqual(
      [DROP_BATCH, DROP_BATCH, 1]
    )
    expect(engine.trash.size).toBe(0)
  })

  it('is left alone where there is none: an empty page drops nothing', async () => {
    const { store, engine } = await pool()
    const all = Array.from({ length: DROP_BATCH }, (_, n) => trash(n))
    lay(engine, all)
    engine.given.length = 0
    await store.maintain()
    expect(engine.given.filter(({ step }) => step === 'trash')).toHaveLength(2)
    expect(engine.given.filter(({ step }) => step === 'drop')).toHaveLength(1)
  })

  it('of a store without a large tier is not even looked for', async () => {
    const { store, engine } = await opened({ kvOnly: true })
    await store.put('a')
    await store.maintain()
    expect(engine.count('trash')).toBe(0)
  })
})

describe('the drop after a delete', () => {
  /** A store with unpinned large entries. */
  async function pool(contents: number) {
    const found = await opened()
    const keys: BlobKey[] = []
    for (let seed = 0; seed < contents; seed++) {
      const receipt = await found.store.put(bytes(100, seed))
      await receipt.release()
      keys.push(receipt.key)
    }
    await found.store.delete(`blake3:${'0'.repeat(64)}`)
    found.engine.steps.length = 0
    return { ...found, keys }
  }

  it('takes the lease and gives it back, once for those that come together and once for those that came too late', async () => {
    const { store, engine, keys } = await pool(4)
    const gate = engine.gate('trash')
    const first = store.delete(keys[0] as string)
    await gate.reached
    const rest = [1, 2, 3].map(n => store.delete(keys[n] as string))
    while (engine.entries.size > 0) await turn()
    await turn()
    expect(engine.count('lease')).toBe(1)
    gate.open()
    expect(await Promise.all([first, ...rest])).toEqual([true, true, true, true])
    expect([engine.count('lease'), engine.count('lease.release'), engine.leased]).toEqual([2, 2, false])
    expect(engine.residue).toEqual(NOTHING)
    // Whoever comes after all of them begins anew.
    const receipt = await store.put(bytes(100))
    await receipt.release()
    expect(await store.delete(receipt.key)).toBe(true)
    expect([engine.count('lease'), engine.trash.size]).toEqual([3, 0])
  })

  it('that failed fails nobody, not even the next, which begins when it has ended', async () => {
    const { store, engine, keys } = await pool(2)
    const gate = engine.gate('trash')
    const first = store.delete(keys[0] as string)
    await gate.reached
    const second = store.delete(keys[1] as string)
    while (engine.entries.size > 0) await turn()
    gate.fail(new Error('away'))
    expect(await Promise.all([first, second])).toEqual([true, true])
    expect([engine.count('lease'), engine.trash.size, engine.leased]).toEqual([2, 0, false])
  })

  it('waits for a lease that somebody else has a few times, longer each time, and then leaves it to maintenance', async () => {
    const { store, engine, keys } = await pool(1)
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    engine.every('lease', async () => undefined)
    const deleted = store.delete(keys[0] as string)
    const waited: number[] = []
    for (const waitMs of LEASE_WAITS_MS) {
      while (engine.count('lease') < waited.length + 1) await turn()
      await vi.advanceTimersByTimeAsync(waitMs - 1)
      await turn()
      expect(engine.count('lease')).toBe(waited.length + 1)
      await vi.advanceTimersByTimeAsync(1)
      waited.push(waitMs)
    }
    expect(await deleted).toBe(true)
    expect([engine.count('lease'), engine.count('trash'), engine.trash.size]).toEqual([5, 0, 1])
    engine.heal()
    expect(await store.maintain()).toMatchObject({ dropped: 1 })
  })

  it('goes on as soon as the lease is free, and stops where it is lost', async () => {
    const { store, engine, keys } = await pool(2)
    engine.next('lease', async () => undefined)
    expect(await store.delete(keys[0] as string)).toBe(true)
    expect([engine.count('lease'), engine.trash.size]).toEqual([2, 0])
    engine.next('lease', async effect => {
      const lease = (await effect()) as Lease
      engine.loseLease()
      return lease
    })
    expect(await store.delete(keys[1] as string)).toBe(true)
    expect([engine.count('lease'), engine.count('trash'), engine.trash.size]).toEqual([3, 1, 1])
  })

  it('is left to maintenance where bodies wait', async () => {
    const engine = new Scripted()
    const { store } = await opened({ engine, trashDelayMs: 1_000 })
    const receipt = await store.put(bytes(100))
    damage(engine, body => body.slice(1))
    expect((await store.put(bytes(100))).created).toBe(true)
    expect([engine.count('drop'), engine.trash.size]).toEqual([0, 1])
    await receipt.release()
  })
})
