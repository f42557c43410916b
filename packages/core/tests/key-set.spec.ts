import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { InvalidKeyError } from '../src/index.js'
import { type BlobKey, digestOf, formatKey } from '../src/key.js'
import { hashOf, KeySet, randomMultipliers } from '../src/sweep/key-set.js'

/** With these the slot is the first bits of the second word. */
const BY_SECOND_WORD = Uint32Array.of(0, 1, 0, 0, 0, 0, 0, 0)
const keyOf = (i: number) => formatKey('blake3', createHash('sha256').update(`${i}`).digest())
/** A key whose second four bytes, the hash of its slot, are given. */
const inSlot = (slot: number, rest: number) => {
  const digest = Buffer.alloc(32)
  digest.writeUInt32LE((slot << 22) >>> 0, 4)
  digest.writeUInt32BE(rest, 28)
  return formatKey('blake3', digest)
}

describe('a set of keys', () => {
  it('is one: what was added is there, repeated or not, and nothing else', () => {
    const set = new KeySet('blake3')
    for (let i = 0; i < 20_000; i += 2) for (const _ of [1, 2]) set.add(keyOf(i))
    expect(set.size).toBe(10_000)
    for (let i = 0; i < 20_000; i++) if (set.has(keyOf(i)) !== (i % 2 === 0)) expect.unreachable(`key ${i}`)
  })

  it('keeps keys apart that want one slot, through every growth', () => {
    const set = new KeySet('blake3', BY_SECOND_WORD)
    const keys: BlobKey[] = []
    for (let i = 0; i < 3_000; i++) keys.push(inSlot(1_023, i))
    for (const key of keys) set.add(key)
    expect(set.size).toBe(3_000)
    expect(keys.every(key => set.has(key))).toBe(true)
    expect(set.has(inSlot(1_023, 3_000))).toBe(false)
    expect(set.has(inSlot(1_022, 0))).toBe(false)
  })

  it.each<[string, (digest: Buffer) => Buffer]>([
    // What an index of the application's begins with: a thousand of many keys.
    ['that come in their order', digest => digest.fill(0, 0, 2)],
    ['that somebody chose alike', digest => digest.fill(0, 4, 30)],
    ['that somebody chose alike but for one end', digest => digest.fill(0, 0, 30)]
  ])('wants slots all over its index for keys %s', (_, alike) => {
    const digests = Buffer.concat(Array.from({ length: 1_000 }, (_, i) => alike(digestOf(keyOf(i)))))
    const words = new Uint32Array(new Uint8Array(digests).buffer)
    const multipliers = randomMultipliers()
    const slots = new Set(Array.from({ length: 1_000 }, (_, i) => hashOf(words, i, multipliers) >>> 21))
    // 791 of 2,048 are expected of slots that are drawn; keys that walk past each other want a few.
    expect(slots.size).toBeGreaterThan(500)
  })

  it('tells the all-zero digest, and ones that start with zeros, from an empty slot', () => {
    const zero = formatKey('blake3', Buffer.alloc(32))
    const set = new KeySet('blake3', BY_SECOND_WORD)
    expect(set.has(zero)).toBe(false)
    set.add(inSlot(0, 1))
    expect(set.has(zero)).toBe(false)
    expect(set.has(inSlot(0, 1))).toBe(true)
    set.add(zero)
    set.add(zero)
    expect(set.has(zero)).toBe(true)
    expect(set.size).toBe(2)
    for (let i = 0; i < 2_000; i++) set.add(keyOf(i))
    expect(set.has(zero)).toBe(true)
    expect(set.size).toBe(2_002)
  })

  it('that is empty has nothing', () => {
    expect(new KeySet('blake3').size).toBe(0)
    expect(new KeySet('blake3').has(keyOf(1))).toBe(false)
  })

  it('takes nothing that is no key of its derivation, and is what it was', () => {
    const set = new KeySet('blake3')
    set.add(keyOf(1))
    for (const wrong of [
      keyOf(2).toUpperCase(),
      keyOf(2).slice(1),
      `${keyOf(2).slice(0, -1)}g`,
      `sha256${keyOf(2).slice(6)}`
    ])
      expect(() => set.add(wrong)).toThrow(InvalidKeyError)
    expect(set.size).toBe(1)
    expect([set.has(keyOf(1)), set.has(keyOf(2))]).toEqual([true, false])
  })
})
