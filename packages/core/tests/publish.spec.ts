/** What a put does around its publication: the looks at its stage, an outcome nobody knows, healing, and what is taken back. */
import { describe, expect, it } from 'vitest'
import type { Locator } from '../src/engine.js'
import type { BlobKey, PutOptions } from '../src/index.js'
import { bytes, NOTHING, opened, rejection } from './opened.js'

const stream = (...chunks: Uint8Array[]) =>
  (async function* () {
    yield* chunks
  })()

describe('a put whose stage was lost', () => {
  it.each<[string, string, number]>([
    ['before its body is made', 'create', 1],
    ['before it is sealed', 'staged', 2],
    ['before it is published', 'publish', 1]
  ])('%s fails as such, and drops what it made', async (_, step, nth) => {
    const { store, engine } = await opened()
    let calls = 0
    engine.every(step, async effect => {
      // Somebody's maintenance came by, and found the stage expired.
      const isBodyless = engine.given.at(-1)?.step === 'publish' && isNone(engine.given.at(-1)?.args[0])
      if (!isBodyless && ++calls === nth) {
        for (const stage of engine.stages.keys())
          engine.trash.set(stage, { what: stage, key: undefined, length: undefined, attempts: 0 })
        engine.stages.clear()
      }
      return effect()
    })
    expect(await rejection(store.put(stream(bytes(100))))).toMatchObject({ code: 'ERR_BLOB_STAGE_LOST' })
    engine.heal()
    await store.maintain()
    expect(engine.residue).toEqual(NOTHING)
  })

  it('by its own renewal is noticed at the next look', async () => {
    const { store, engine } = await opened()
    let isLost = false
    const source = async function* () {
      yield bytes(2_000_000)
      engine.stages.clear()
      isLost = true
      await store.delete(`blake3:${'0'.repeat(64)}`)
      yield bytes(10)
    }
    expect(await rejection(store.put(source()))).toMatchObject({ code: 'ERR_BLOB_STAGE_LOST' })
    expect(isLost).toBe(true)
    expect(engine.residue).toEqual(NOTHING)
  })

  it('by the word of a renewal alone is lost, whatever the look says: the row may be a later one', async () => {
    const { store, engine } = await opened()
    const source = async function* () {
      yield bytes(2_000_000)
      engine.lie('renew', (truth: object) => ({ ...truth, stages: [...engine.stages.keys()] }))
      await store.delete(`blake3:${'0'.repeat(64)}`)
      yield bytes(10)
    }
    expect(await rejection(store.put(source()))).toMatchObject({ code: 'ERR_BLOB_STAGE_LOST' })
    expect(engine.residue).toEqual(NOTHING)
  })

  const isNone = (items: unknown) => (items as { bytes: { kind: string } }[])[0]?.bytes.kind === 'none'
})

describe('a publication whose outcome is unknown', () => {
  it('and that went through leaves the entry its body', async () => {
    const { store, engine } = await opened()
    engine.next('publish', effect => effect())
    engine.failAfter('publish')
    expect(await rejection(store.put(bytes(100)))).toMatchObject({ code: 'ERR_BLOB_ENGINE' })
    expect(engine.residue).toEqual({ ...NOTHING, entries: 1, bodies: 1 })
    expect(engine.count('drop')).toBe(0)
    expect(engine.count('writer.discard')).toBe(0)
    const receipt = await store.put(bytes(100))
    expect(receipt.created).toBe(false)
    expect(await (await store.get(receipt.key))?.bytes()).toEqual(bytes(100))
    expect(engine.bodies.size).toBe(1)
  })

  it('and that did not go through leaves nothing', async () => {
    const { store, engine } = await opened()
    engine.next('publish', effect => effect())
    engine.failBefore('publish')
    await rejection(store.put(bytes(100)))
    expect(engine.residue).toEqual(NOTHING)
  })

  it('and that goes through after the deadline and the clean-up finds its stage gone', async () => {
    const { store, engine } = await opened()
    engine.next('publish', effect => effect())
    const gate = engine.gate('publish')
    expect(await rejection(store.put(bytes(100)))).toMatchObject({ kind: 'outcome-unknown' })
    gate.open()
    await new Promise(setImmediate)
    expect(engine.residue).toEqual(NOTHING)
  })

  it('keeps a body whose stage cannot be ended now, for maintenance', async () => {
    const { store, engine } = await opened()
    engine.next('publish', effect => effect())
    engine.failBefore('publish')
    engine.failBefore('unstage')
    await rejection(store.put(bytes(100)))
    expect(engine.residue).toEqual({ ...NOTHING, stages: 1, bodies: 1 })
    engine.clock += 15 * 60 * 1000
    expect(await store.maintain()).toMatchObject({ stagesReclaimed: 1, dropped: 1 })
    expect(engine.residue).toEqual(NOTHING)
  })

  it('of small content is either of the two, and a retry converges', async () => {
    for (const went of [true, false]) {
      const { store, engine } = await opened()
      if (went) engine.failAfter('publish')
      else engine.failBefore('publish')
      await rejection(store.put('a'))
      expect(engine.entries.size).toBe(went ? 1 : 0)
      expect((await store.put('a')).created).toBe(!went)
      expect(engine.entries.size).toBe(1)
    }
  })
})

describe('a put that fails', () => {
  it.each(['stage', 'create', 'write', 'seal'])(
    'at %s, and again at every step of its clean-up, reports the first failure',
    async step => {
      const { store, engine } = await opened()
      const cause = new Error('first')
      engine.failBefore(step, cause)
      for (const clean of ['writer.discard', 'unstage', 'drop', 'dropped']) engine.failBefore(clean)
      expect(await rejection(store.put(bytes(100)))).toMatchObject({ operation: step, cause })
      engine.heal()
      engine.clock += 15 * 60 * 1000
      await store.maintain({ scan: true })
      expect({ ...engine.residue, open: 0 }).toEqual(NOTHING)
    }
  )

  it.each<[string, PutOptions, string]>([
    ['is another than expected', { expect: `blake3:${'0'.repeat(64)}` }, 'ERR_BLOB_KEY_MISMATCH'],
    ['is shorter than declared', { length: 200 }, 'ERR_BLOB_LENGTH_MISMATCH'],
    ['is longer than declared', { length: 50 }, 'ERR_BLOB_LENGTH_MISMATCH'],
    ['is longer than accepted', { maxLength: 99 }, 'ERR_BLOB_TOO_LARGE']
  ])('since its content %s leaves nothing, as bytes, stream or writer', async (_, options, code) => {
    const { store, engine } = await opened()
    const write = async () => {
      const writer = store.writer(options)
      await writer.write(bytes(60))
      await writer.write(bytes(100).subarray(60))
      return writer.commit()
    }
    for (const put of [() => store.put(bytes(100), options), () => store.put(stream(bytes(100)), options), write]) {
      expect(await rejection(put())).toMatchObject({ code })
      expect(engine.residue).toEqual(NOTHING)
      expect(store.pins()).toEqual([])
    }
  })
})

describe('a put of what is there already', () => {
  it('writes nothing when its bytes are at hand, and takes its body back when they were not', async () => {
    const { store, engine } = await opened()
    const first = await store.put(bytes(100))
    const before = engine.count('create')
    expect((await store.put(bytes(100))).created).toBe(false)
    expect(engine.count('create')).toBe(before)
    expect((await store.put(stream(bytes(100)))).created).toBe(false)
    expect(engine.count('create')).toBe(before + 1)
    expect(engine.residue).toEqual({ ...NOTHING, entries: 1, bodies: 1 })
    expect(store.pins()).toEqual([{ key: first.key, count: 3 }])
  })

  it('succeeds although the body it lost with cannot be taken back now', async () => {
    const { store, engine } = await opened()
    await store.put(bytes(100))
    for (const clean of ['writer.discard', 'unstage']) engine.failBefore(clean)
    expect((await store.put(stream(bytes(100)))).created).toBe(false)
    engine.clock += 15 * 60 * 1000
    await store.maintain()
    expect(engine.residue).toEqual({ ...NOTHING, entries: 1, bodies: 1 })
  })

  it.each<[string, (engine: Awaited<ReturnType<typeof opened>>['engine'], key: BlobKey) => void]>([
    ['missing', engine => engine.bodies.clear()],
    ['cut short', engine => cut(engine)],
    [
      'recorded with another length',
      (engine, key) => {
        const found = engine.entries.get(key)
        if (found !== undefined) engine.entries.set(key, { entry: { ...found.entry, length: 7 } })
      }
    ]
  ])('heals it where its body is %s, from bytes and from a stream', async (_, damage) => {
    for (const content of [() => bytes(100), () => stream(bytes(100))]) {
      const { store, engine } = await opened()
      const { key } = await store.put(bytes(100))
      damage(engine, key)
      const receipt = await store.put(content())
      expect(receipt).toMatchObject({ key, created: true, length: 100 })
      // The first put's pin and the healing one's: none is left of the looks in between.
      expect(store.pins()).toEqual([{ key, count: 2 }])
      expect(await (await store.get(key))?.bytes()).toEqual(bytes(100))
      expect(engine.entries.size).toBe(1)
      await store.maintain()
      expect(engine.residue).toEqual({ ...NOTHING, entries: 1, bodies: 1 })
    }
  })

  it('rejects, without a pin, when the look at its body fails: a failing medium is not a missing body', async () => {
    const { store, engine } = await opened()
    const { key } = await store.put(bytes(100))
    engine.failBefore('length')
    expect(await rejection(store.put(bytes(100)))).toMatchObject({ operation: 'length', key })
    expect(store.pins()).toEqual([{ key, count: 1 }])
    expect(engine.bodies.size).toBe(1)
  })

  const cut = (engine: Awaited<ReturnType<typeof opened>>['engine']) => {
    for (const [locator, body] of engine.bodies) engine.bodies.set(locator, { ...body, bytes: body.bytes.subarray(1) })
  }
})

describe('a hundred puts of one content at once', () => {
  it.each([5, 100])('of %i bytes make one entry, and one of them made it', async length => {
    const { store, engine } = await opened()
    const receipts = await Promise.all(
      [...Array(100).keys()].map(i => store.put(i % 2 === 0 ? bytes(length) : stream(bytes(length))))
    )
    expect(receipts.filter(({ created }) => created).length).toBe(1)
    expect(new Set(receipts.map(({ key }) => key)).size).toBe(1)
    expect(engine.residue).toEqual({ ...NOTHING, entries: 1, bodies: length > 16 ? 1 : 0 })
    expect(engine.pins.size).toBe(1)
  })
})

describe('a read', () => {
  it('of a body that moved goes on at its new place, at the same byte', async () => {
    const { store, engine } = await opened()
    engine.readLength = 10
    const { key } = await store.put(bytes(100))
    const iterator = (await store.get(key))?.[Symbol.asyncIterator]()
    const parts = [(await iterator?.next())?.value as Uint8Array]
    const [[locator, body]] = [...engine.bodies] as [[Locator, { stage: never; key: BlobKey; bytes: Uint8Array }]]
    engine.bodies.delete(locator)
    engine.bodies.set('elsewhere' as Locator, body)
    engine.entries.set(key, { entry: { key, length: 100, place: { tier: 'large', locator: 'elsewhere' as Locator } } })
    for (let step = await iterator?.next(); step?.done === false; step = await iterator?.next()) parts.push(step.value)
    expect(Buffer.concat(parts)).toEqual(Buffer.from(bytes(100)))
    expect(engine.open).toBe(0)
  })

  it('of a body that is gone says whether the entry was removed or is damaged', async () => {
    const { store, engine } = await opened()
    const { key } = await store.put(bytes(100))
    const blob = await store.get(key)
    engine.bodies.clear()
    expect(await rejection(blob?.bytes() as Promise<unknown>)).toMatchObject({ code: 'ERR_BLOB_CORRUPT', key })
    engine.entries.clear()
    expect(await rejection(blob?.bytes() as Promise<unknown>)).toMatchObject({ code: 'ERR_BLOB_REMOVED', key })
  })

  it('of damaged bytes never ends as if complete', async () => {
    const { store, engine } = await opened()
    engine.readLength = 10
    const { key } = await store.put(bytes(100))
    for (const [locator, body] of engine.bodies) {
      engine.bodies.set(locator, {
        ...body,
        bytes: Uint8Array.from(body.bytes, (byte, i) => (i === 50 ? byte ^ 1 : byte))
      })
    }
    let seen = 0
    const read = async () => {
      for await (const chunk of (await store.get(key)) ?? []) seen += chunk.length
    }
    expect(await rejection(read())).toMatchObject({ code: 'ERR_BLOB_CORRUPT' })
    expect(seen).toBeLessThan(100)
    const reader = (await store.get(key))?.stream().getReader()
    const drain = async () => {
      while ((await reader?.read())?.done === false);
    }
    expect(await rejection(drain())).toMatchObject({ code: 'ERR_BLOB_CORRUPT' })
    expect(await rejection((await store.get(key))?.bytes() as Promise<unknown>)).toMatchObject({
      code: 'ERR_BLOB_CORRUPT'
    })
    expect((await (await store.get(key, { verify: false }))?.bytes())?.length).toBe(100)
    expect(engine.open).toBe(0)
  })

  it('asked for several chunks at once gives each of them once, in order', async () => {
    const { store, engine } = await opened()
    engine.readLength = 30
    for (const length of [10, 100]) {
      const { key } = await store.put(bytes(length))
      const iterator = (await store.get(key))?.[Symbol.asyncIterator]() as AsyncIterator<Uint8Array>
      const steps = await Promise.all([...Array(6)].map(() => iterator.next()))
      expect(Buffer.concat(steps.flatMap(({ value }) => (value === undefined ? [] : [value])))).toEqual(
        Buffer.from(bytes(length))
      )
      expect(steps.at(-1)).toEqual({ done: true, value: undefined })
    }
  })

  it('fails alone when a put that runs beside it cannot make the pool', async () => {
    const { store, engine } = await opened()
    const gate = engine.gate('claim')
    const put = rejection(store.put('a'))
    await gate.reached
    const has = store.has(`blake3:${'0'.repeat(64)}`)
    gate.fail(new Error('the large tier'))
    expect(await put).toMatchObject({ code: 'ERR_BLOB_ENGINE' })
    expect(await has).toBe(false)
  })
})
