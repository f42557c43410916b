// A blob whose bytes came with its record: the first whole read takes them, and each further one looks again.
import { describe, expect, it } from 'vitest'
import { BlobRemovedError } from '../src/index.js'
import { bytes, opened, rejection, THRESHOLD } from './opened.js'

const CONTENT = bytes(THRESHOLD)

async function found() {
  const { store, engine } = await opened()
  const { key } = await store.put(CONTENT, { pin: false })
  const blob = await store.get(key)
  if (blob === undefined) throw new Error('the blob was just put')
  return { store, engine, key, blob }
}

describe('an inline blob', () => {
  it('gives every whole read a buffer of its own', async () => {
    const { blob } = await found()
    const first = await blob.bytes()
    first.fill(0)
    expect(await blob.bytes()).toEqual(CONTENT)
    expect(new Uint8Array(await blob.arrayBuffer())).toEqual(CONTENT)
  })

  it('gives the buffer and nothing beside the bytes', async () => {
    const { blob } = await found()
    const first = await blob.bytes()
    expect(Object.getPrototypeOf(first)).toBe(Uint8Array.prototype)
    expect(first.buffer.byteLength).toBe(THRESHOLD)
  })

  it('is read as text any number of times, before and after', async () => {
    const { blob } = await found()
    const text = new TextDecoder().decode(CONTENT)
    expect([await blob.text(), await blob.text()]).toEqual([text, text])
    await blob.bytes()
    expect(await blob.text()).toBe(text)
  })

  it('goes on in a slice and in a pass that had begun, whatever became of the bytes that were given away', async () => {
    const { blob } = await found()
    const part = blob.slice(2, 5)
    const pass = blob[Symbol.asyncIterator]()
    const given = await blob.bytes()
    given.fill(0)
    expect(await part.bytes()).toEqual(CONTENT.subarray(2, 5))
    expect((await pass.next()).value).toEqual(CONTENT)
  })

  it('is looked for again by a second read, which says that it was removed', async () => {
    const { store, blob, key } = await found()
    store.protect({ name: 'nothing', live: () => [] })
    await blob.bytes()
    expect(await store.delete(key)).toBe(true)
    expect(await rejection(blob.bytes())).toBeInstanceOf(BlobRemovedError)
  })

  it('that was read in part is still whole when it was removed', async () => {
    const { store, blob, key } = await found()
    store.protect({ name: 'nothing', live: () => [] })
    await blob.slice(1).bytes()
    expect(await store.delete(key)).toBe(true)
    expect(await blob.bytes()).toEqual(CONTENT)
  })
})
