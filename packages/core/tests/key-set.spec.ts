import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { InvalidKeyError } from '../src/index.js'
import { type BlobKey, formatKey } from '../src/key.js'
import { KeySet } from '../src/sweep/key-set.js'

const keyOf = (i: number) => formatKey('blake3', createHash('sha256').update(`${i}`).digest())
/** A key whose second four bytes, the hash of its slot, are given. */
const inSlot = (slot: number, rest: number) => {
  const digest = Buffer.alloc(32)
  digest.writeUInt32LE(slot, 4)
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
    const set = new KeySet('blake3')
    const keys: BlobKey[] = []
    for (let i = 0; i < 3_000; i++) keys.push(inSlot(1_023, i))
    for (const key of keys) set.add(key)
    expect(set.size).toBe(3_000)
    expect(keys.every(key => set.has(key))).toBe(true)
    expect(set.has(inSlot(1_023, 3_000))).toBe(false)
    expect(set.has(inSlot(1_022, 0))).toBe(false)
  })

  it('grows by keys in their order as fast as by keys in any', () => {
    const keys = Array.from({ length: 50_000 }, (_, i) => keyOf(i))
    const inOrder = [...keys].sort()
    const timeOf = (added: readonly BlobKey[]) => {
      const begun = performance.now()
      const set = new KeySet('blake3')
      for (const key of added) set.add(key)
      return performance.now() - begun
    }
    // Interleaved, the best of each: walking past all earlier keys took thirty times as long at this size, and the more the larger it is.
    const times = Array.from({ length: 5 }, () => [timeOf(keys), timeOf(inOrder)] as const)
    const [shuffled, ordered] = [Math.min(...times.map(([one]) => one)), Math.min(...times.map(([, other]) => other))]
    expect(ordered / shuffled).toBeLessThan(8)
  })

  it('tells the all-zero digest, and ones that start with zeros, from an empty slot', () => {
    const zero = formatKey('blake3', Buffer.alloc(32))
    const set = new KeySet('blake3')
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
