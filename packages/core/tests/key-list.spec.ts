import { createHash } from 'node:crypto'
import { expect, it } from 'vitest'
import { formatKey } from '../src/key.js'
import { LIVE_BATCH } from '../src/limits.js'
import { KeyList } from '../src/sweep/key-list.js'

const digests = Array.from({ length: 2 * LIVE_BATCH + 500 }, (_, n) => createHash('sha256').update(`${n}`).digest())
const keys = digests.map(digest => formatKey('sha256', digest))
/** Compared at once, because what differs among so many would take minutes to show. */
const isAll = (chunks: readonly Uint8Array[], all: readonly Buffer[]) =>
  Buffer.concat(chunks).equals(Buffer.concat(all))

it('a list of keys gives their digests away in the order they came, over every chunk, once', () => {
  const list = new KeyList('sha256')
  for (const key of keys) list.add(key)
  const given = [...list.all()]
  expect(given.map(({ length }) => length / 32)).toEqual([LIVE_BATCH, LIVE_BATCH, 500])
  expect(isAll(given, digests)).toBe(true)
  expect([...list.all()]).toEqual([])
  expect([...new KeyList('sha256').all()]).toEqual([])
})

it('a list of keys gives full chunks away while it fills, and the rest stays', () => {
  const list = new KeyList('sha256')
  const given: Uint8Array[] = []
  for (const [n, key] of keys.entries()) {
    list.add(key)
    expect(list.hasFull, `${n}`).toBe((n + 1) % LIVE_BATCH === 0)
    given.push(...list.full())
  }
  expect(given.map(({ length }) => length / 32)).toEqual([LIVE_BATCH, LIVE_BATCH])
  given.push(...list.all())
  expect(isAll(given, digests)).toBe(true)
})

it('a list of keys takes nothing else, and goes on as if it had not been asked to', () => {
  const list = new KeyList('sha256')
  const [one, two] = keys as unknown as [string, string]
  list.add(one)
  for (const value of [undefined, 'oops', `blake3:${one.slice(7)}`, one.toUpperCase()]) {
    expect(() => list.add(value)).toThrow(expect.objectContaining({ code: 'ERR_BLOB_INVALID_KEY' }))
  }
  list.add(two)
  expect(isAll([...list.all()], digests.slice(0, 2))).toBe(true)
})
