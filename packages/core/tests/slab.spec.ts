/** Memory that many small bodies share: used again when an engine has answered, and never while anybody may be reading it. */
import { describe, expect, it } from 'vitest'
import type { Publication } from '../src/engine.js'
import { copyOf } from '../src/slab.js'
import { bytes, opened, rejection } from './opened.js'
import type { Scripted } from './scripted-engine.js'

const LENGTH = 64 * 1024
const MEMORY = { threshold: LENGTH }
/** More than all slabs that are ever kept hold. */
const MANY = 100

/** The inline bodies that were published, in the very memory that the engine was given. */
function given(engine: Scripted): Uint8Array[] {
  return engine.given
    .filter(({ step }) => step === 'publish')
    .flatMap(({ args }) => args[0] as readonly Publication[])
    .flatMap(item => (item.bytes.kind === 'inline' ? [item.bytes.body] : []))
}

const placeOf = ({ buffer, byteOffset }: Uint8Array) => [buffer, byteOffset] as const

describe('a copy', () => {
  it('holds what the bytes were, whatever becomes of them, at any length', () => {
    for (const length of [0, 1, LENGTH, 2 * LENGTH, 2 * LENGTH + 1]) {
      const original = bytes(length)
      const copy = copyOf(original)
      original.fill(0xff)
      expect(Buffer.compare(copy.bytes, bytes(length))).toBe(0)
      copy.giveBack()
    }
  })

  it('keeps its memory to itself until it is given back, beside any number that are', () => {
    const kept = copyOf(bytes(LENGTH))
    for (let i = 1; i <= MANY; i++) copyOf(bytes(LENGTH, i)).giveBack()
    expect(Buffer.compare(kept.bytes, bytes(LENGTH))).toBe(0)
    kept.giveBack()
  })

  it('is made where the last one was, once that was given back', () => {
    // Whatever the tests before have left in the slab of now, it is used up.
    const filling = Array.from({ length: 8 }, () => copyOf(bytes(LENGTH)))
    const first = copyOf(bytes(LENGTH))
    first.giveBack()
    const second = copyOf(bytes(100))
    expect(placeOf(second.bytes)).toEqual(placeOf(first.bytes))
    for (const copy of [...filling, second]) copy.giveBack()
  })

  it('is made in a slab that all have left', () => {
    const copies = Array.from({ length: 24 }, () => copyOf(bytes(LENGTH)))
    const buffers = new Set(copies.map(copy => copy.bytes.buffer))
    for (const copy of copies) copy.giveBack()
    const again = Array.from({ length: 16 }, () => copyOf(bytes(LENGTH)))
    expect(again.filter(copy => !buffers.has(copy.bytes.buffer))).toEqual([])
    for (const copy of again) copy.giveBack()
  })
})

describe('the memory of a put', () => {
  it('is used again by the next one, once the engine has answered', async () => {
    const { store, engine } = await opened(MEMORY)
    for (let i = 0; i < 9; i++) await store.put(bytes(LENGTH, i))
    const places = given(engine).map(placeOf)
    expect(places.at(-1)).toEqual(places.at(-2))
  })

  it('is nobody else’s while the put is under way', async () => {
    const { store, engine } = await opened({ ...MEMORY, operationTimeoutMs: 30_000 })
    const gate = engine.gate('publish')
    const put = store.put(bytes(LENGTH))
    await gate.reached
    for (let i = 1; i <= MANY; i++) await (await store.put(bytes(LENGTH, i))).release()
    gate.open()
    const { key } = await put
    expect(await (await store.get(key))?.bytes()).toEqual(bytes(LENGTH))
  })

  it.each<[string, (engine: Scripted) => void]>([
    ['failed', engine => engine.failBefore('publish')],
    ['answered too late', engine => void engine.gate('publish')]
  ])('is let go when the engine has %s, for it may be read yet', async (_, plan) => {
    const { store, engine } = await opened(MEMORY)
    await store.put('')
    plan(engine)
    expect(await rejection(store.put(bytes(LENGTH)))).toMatchObject({ code: 'ERR_BLOB_ENGINE' })
    const [, left] = given(engine)
    for (let i = 1; i <= MANY; i++) await (await store.put(bytes(LENGTH, i))).release()
    expect(left && Buffer.compare(left, bytes(LENGTH))).toBe(0)
  })
})
