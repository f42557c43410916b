import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { InvalidKeyError } from '../src/index.js'
import { type BlobKey, digestOf, formatKey } from '../src/key.js'
import { hashOf, randomMultipliers } from '../src/sweep/digest-part.js'
import { KeySet } from '../src/sweep/key-set.js'

/** More than a set keeps in one part. */
const MANY = 40_000
const keyOf = (i: number) => formatKey('blake3', createHash('sha256').update(`${i}`).digest())
const MANY_KEYS = Array.from({ length: MANY }, (_, i) => keyOf(i))
/** A key of a first byte whose last half of a word, and so the place where `BY_LAST_HALF` begins to look, is given. */
const inSlot = (half: number, rest: number, first = 0) => {
  const digest = Buffer.alloc(32)
  digest[0] = first
  digest.writeUInt32BE(rest, 8)
  digest.writeUInt16LE(half, 30)
  return formatKey('blake3', digest)
}
/** With these the hash is the last half of a word: its slot are the first bits of that. */
const BY_LAST_HALF = Int32Array.from({ length: 16 }, (_, half) => (half === 15 ? 1 << 16 : 0))
/** With these every digest has the same hash. */
const ALL_ALIKE = new Int32Array(16)
const added = (keys: Iterable<BlobKey>, multipliers = randomMultipliers()) => {
  const set = new KeySet('blake3', multipliers)
  for (const key of keys) set.add(key)
  return set
}

describe('a set of keys', () => {
  it.each([
    ['few', 1_000],
    ['many', MANY]
  ])('is one: what was added is there, repeated or not, and nothing else (%s)', (_, count) => {
    const keys = MANY_KEYS.slice(0, count)
    const set = new KeySet('blake3')
    const even = keys.filter((_, i) => i % 2 === 0)
    for (const _ of [1, 2]) for (const key of even) for (const _ of [1, 2]) set.add(key)
    expect(keys.filter(key => set.has(key))).toEqual(even)
    expect(set.size).toBe(even.length)
  })

  it('is one while it is asked and added to by turns', () => {
    const set = new KeySet('blake3')
    for (const [i, key] of MANY_KEYS.entries()) {
      if (set.has(key)) expect.unreachable(`key ${i} before it was added`)
      set.add(key)
      if (!set.has(key)) expect.unreachable(`key ${i} after it was added`)
    }
    expect(MANY_KEYS.filter(key => !set.has(key))).toEqual([])
    expect(set.size).toBe(MANY)
  })

  it.each([
    ['slot and look alike there', ALL_ALIKE],
    ['slot', BY_LAST_HALF]
  ])('keeps keys apart that want one %s, whatever it has to settle', (_, multipliers) => {
    const keys = Array.from({ length: 2_000 }, (_, i) => inSlot(0xffff, i))
    const set = added(keys, multipliers)
    expect(set.has(inSlot(0xffff, 2_000))).toBe(false)
    for (const key of keys.slice(0, 1_000)) set.add(key)
    for (let i = 2_001; i < 2_500; i++) set.add(inSlot(0xffff, i))
    expect(keys.every(key => set.has(key))).toBe(true)
    expect(set.size).toBe(2_499)
    expect(set.has(inSlot(0xffff, 2_000))).toBe(false)
    expect(set.has(inSlot(0xfffe, 0))).toBe(false)
  })

  it.each<[string, (digest: Buffer) => Buffer]>([
    // What an index of the application's begins with: a thousand of many keys.
    ['that come in their order', digest => digest.fill(0, 0, 2)],
    ['that somebody chose alike', digest => digest.fill(0, 4, 30)],
    ['that somebody chose alike but for one end', digest => digest.fill(0, 0, 30)],
    [
      'that differ in the first bits of each word',
      digest => digest.map((byte, at) => (at % 4 === 3 ? byte & 0xf0 : 0)) as Buffer
    ],
    [
      'that differ in the first bits of each half of a word',
      digest => digest.map((byte, at) => (at % 2 === 1 ? byte & 0xe0 : 0)) as Buffer
    ],
    [
      'that differ in the last bits of each word',
      digest => digest.map((byte, at) => (at % 4 === 0 ? byte & 0x0f : 0)) as Buffer
    ]
  ])('wants slots all over its index for keys %s', (_, alike) => {
    const digests = Buffer.concat(MANY_KEYS.slice(0, 1_000).map(key => alike(digestOf(key))))
    const words = new Int32Array(new Uint8Array(digests).buffer)
    const slotsBy = (multipliers: Int32Array) =>
      new Set(Array.from({ length: 1_000 }, (_, i) => hashOf(words, i * 8, multipliers) >>> 21)).size
    // 791 of 2,048 are expected of slots that are drawn; keys that walk past each other want a few. One draw in hundreds is an unlucky one.
    expect(Math.max(...Array.from({ length: 5 }, () => slotsBy(randomMultipliers())))).toBeGreaterThan(500)
  })

  it.each([
    ['in few keys', 3, 100_000, 0, 32 * 1024],
    ['in many keys', MANY, 5, 0, 1.5 * MANY + 256 * 384],
    ['in keys of one first byte', MANY, 5, 1, 1.5 * MANY + 384]
  ])(
    'needs memory for different keys, however often they are repeated: %s',
    (_, different, times, length, capacity) => {
      const keys = MANY_KEYS.slice(0, different).map(key => formatKey('blake3', digestOf(key).fill(0, 0, length)))
      const set = new KeySet('blake3')
      let most = 0
      for (let i = 0; i < times; i++) {
        // In another order each time.
        for (let j = 0; j < keys.length; j++) set.add(keys[(j * 7_919) % keys.length] as BlobKey)
        most = Math.max(most, set.capacity)
      }
      expect(most).toBeLessThanOrEqual(capacity)
      expect(set.size).toBe(different)
      expect(keys.every(key => set.has(key))).toBe(true)
    }
  )

  it('that is small needs little memory', () => {
    expect(new KeySet('blake3').capacity).toBe(0)
    expect(added(MANY_KEYS.slice(0, 10)).capacity).toBeLessThanOrEqual(128)
    expect(added(MANY_KEYS.slice(0, 10_000)).capacity).toBeLessThanOrEqual(10_128)
  })

  it.each([
    ['one slot', ALL_ALIKE],
    ['slots of their own', randomMultipliers()]
  ])('tells the all-zero digest, and ones that start with zeros, from an empty slot, with %s', (_, multipliers) => {
    const zero = formatKey('blake3', Buffer.alloc(32))
    const set = new KeySet('blake3', multipliers)
    expect(set.has(zero)).toBe(false)
    set.add(inSlot(0, 1))
    expect(set.has(zero)).toBe(false)
    expect(set.has(inSlot(0, 1))).toBe(true)
    set.add(zero)
    set.add(zero)
    expect(set.has(zero)).toBe(true)
    expect(set.size).toBe(2)
    for (const key of MANY_KEYS.slice(0, 2_000)) set.add(key)
    expect(set.has(zero)).toBe(true)
    expect(set.size).toBe(2_002)
  })

  it('that is empty has nothing', () => {
    expect(new KeySet('blake3').size).toBe(0)
    expect(new KeySet('blake3').has(keyOf(1))).toBe(false)
  })

  it.each([
    ['few', 1],
    ['many', MANY]
  ])('takes nothing that is no key of its derivation, and is what it was (%s)', (_, count) => {
    const set = added(MANY_KEYS.slice(0, count))
    const other = keyOf(MANY)
    for (const wrong of [other.toUpperCase(), other.slice(1), `${other.slice(0, -1)}g`, `sha256${other.slice(6)}`])
      expect(() => set.add(wrong)).toThrow(InvalidKeyError)
    expect(() => set.has(`sha256${other.slice(6)}` as BlobKey)).toThrow(InvalidKeyError)
    expect(set.size).toBe(count)
    expect([set.has(keyOf(0)), set.has(other)]).toEqual([true, false])
  })
})
