/**
 * A part of a set of digests. They lie in blocks, in the order they came. The first of them are settled: an index of their numbers (from 1;
 * 0 is an empty slot), with open addressing and linear probing, finds each, and there is none twice. The others are gathered, and
 * nothing is known of them yet.
 *
 * Beside its number a slot has the bits of the hash that its place does not say, so that another digest is looked at one time in thousands.
 */
import { randomFillSync } from 'node:crypto'
import { DIGEST_LENGTH } from '../limits.js'

export const WORDS = DIGEST_LENGTH / Int32Array.BYTES_PER_ELEMENT
const BLOCK_KEYS = 128
const BLOCK_WORDS = BLOCK_KEYS * WORDS
const SLAB_WORDS = 16 * BLOCK_WORDS
const HASH_BITS = 32

/** What the parts of a set share: what their hash depends on, and memory from which each takes its next block. */
export interface Memory {
  readonly multipliers: Int32Array
  slab: Int32Array
  used: number
}

export class DigestPart {
  readonly #memory: Memory
  readonly #blocks: Int32Array[] = []
  readonly #gatheredMin: number
  #index = new Int32Array()
  /** The index has two to the power of this many slots; none before the first digest is settled. */
  #bits = 0
  #settled = 0
  #count = 0
  #full: number

  /** It may gather half as many digests as are settled, and `gatheredMin` in any case. */
  constructor(memory: Memory, gatheredMin: number) {
    this.#memory = memory
    this.#gatheredMin = gatheredMin
    this.#full = gatheredMin
  }

  get size(): number {
    this.settle()
    return this.#settled
  }

  get capacity(): number {
    return this.#blocks.length * BLOCK_KEYS
  }

  /** Whether it is time to settle. */
  get isFull(): boolean {
    return this.#count >= this.#full
  }

  /** Takes the digest that begins at a word. */
  gather(words: Int32Array, from: number): void {
    const number = this.#count
    if (number === this.#blocks.length * BLOCK_KEYS) this.#blocks.push(newBlock(this.#memory))
    copyDigest(words, from, this.#blockOf(number), wordOf(number))
    this.#count = number + 1
  }

  has(digest: Int32Array): boolean {
    if (this.#count > this.#settled) this.settle()
    return this.#settled > 0 && this.#index[this.#slotOf(digest, 0, hashOf(digest, 0, this.#memory.multipliers))] !== 0
  }

  /** Puts what is gathered into the index, and lets go of what was there already. */
  settle(): void {
    if (this.#count * 3 > this.#index.length * 2) this.#makeIndex()
    for (let number = this.#settled; number < this.#count; number++) {
      const block = this.#blockOf(number)
      const from = wordOf(number)
      const hash = hashOf(block, from, this.#memory.multipliers)
      const slot = this.#slotOf(block, from, hash)
      if (this.#index[slot] !== 0) continue
      copyDigest(block, from, this.#blockOf(this.#settled), wordOf(this.#settled))
      this.#index[slot] = entryOf(this.#settled++, hash, this.#bits)
    }
    this.#count = this.#settled
    this.#full = this.#settled + Math.max(this.#gatheredMin, this.#settled >>> 1)
  }

  /** Gives every digest to the part of its first byte. */
  divideAmong(parts: readonly DigestPart[]): void {
    for (let number = 0; number < this.#count; number++) {
      const block = this.#blockOf(number)
      const from = wordOf(number)
      const part = parts[firstByteOf(block, from) % parts.length] as DigestPart
      part.gather(block, from)
      if (part.isFull) part.settle()
    }
  }

  /** The slot that names the digest, or the empty one where it would go. */
  #slotOf(words: Int32Array, from: number, hash: number): number {
    const index = this.#index
    const bits = this.#bits
    let slot = hash >>> (HASH_BITS - bits)
    for (let entry = index[slot] as number; entry !== 0; entry = index[slot] as number) {
      const isAlike = (entry ^ hash) << bits === 0
      if (isAlike && this.#isAt((entry >>> (HASH_BITS - bits)) - 1, words, from)) break
      slot = (slot + 1) & (index.length - 1)
    }
    return slot
  }

  #isAt(number: number, words: Int32Array, from: number): boolean {
    const block = this.#blockOf(number)
    const at = wordOf(number)
    for (let word = 0; word < WORDS; word++) {
      if (block[at + word] !== words[from + word]) return false
    }
    return true
  }

  /** An index for all digests, two thirds full at the most, with the settled in it. */
  #makeIndex(): void {
    const bits = HASH_BITS - Math.clz32(Math.ceil(this.#count * 1.5))
    const index = new Int32Array(2 ** bits)
    for (let number = 0; number < this.#settled; number++) {
      const hash = hashOf(this.#blockOf(number), wordOf(number), this.#memory.multipliers)
      let slot = hash >>> (HASH_BITS - bits)
      while (index[slot] !== 0) slot = (slot + 1) & (index.length - 1)
      index[slot] = entryOf(number, hash, bits)
    }
    this.#index = index
    this.#bits = bits
  }

  #blockOf(number: number): Int32Array {
    return this.#blocks[Math.floor(number / BLOCK_KEYS)] as Int32Array
  }
}

/**
 * Each half of a word times a random number of its own, added up; the first bits of that say the slot. Digests are uniform, but those that
 * a source says need not be digests of anything: its users may choose them. Two that differ have the same first 17 bits for at most
 * two in 131,072 of the multipliers, whoever chose them (a difference of halves has at most 15 zeros at its end). Whole words would need products of more
 * bits: where only their first four differ, all sums are one of sixteen, and a million keys took minutes.
 */
export function hashOf(words: Int32Array, from: number, multipliers: Int32Array): number {
  let sum = 0
  for (let word = 0; word < WORDS; word++) {
    const both = words[from + word] as number
    const low = Math.imul(both & 0xffff, multipliers[2 * word] as number)
    const high = Math.imul(both >>> 16, multipliers[2 * word + 1] as number)
    sum = (sum + low + high) | 0
  }
  return sum
}

export function randomMultipliers(): Int32Array {
  return randomFillSync(new Int32Array(2 * WORDS))
}

/** Of the digest that begins at a word. Where words have their last byte first it is the fourth, which is out of order but the same each time. */
export function firstByteOf(words: Int32Array, from: number): number {
  return (words[from] as number) & 0xff
}

/** A number, which is below the length of the index, and the bits of the hash that the place in it does not say. */
function entryOf(number: number, hash: number, bits: number): number {
  return ((number + 1) << (HASH_BITS - bits)) | ((hash << bits) >>> bits)
}

/** Where in its block a digest begins. */
function wordOf(number: number): number {
  return (number % BLOCK_KEYS) * WORDS
}

function copyDigest(from: Int32Array, at: number, to: Int32Array, toAt: number): void {
  for (let word = 0; word < WORDS; word++) to[toAt + word] = from[at + word] as number
}

function newBlock(memory: Memory): Int32Array {
  if (memory.used === memory.slab.length) {
    memory.slab = new Int32Array(SLAB_WORDS)
    memory.used = 0
  }
  const from = memory.used
  memory.used += BLOCK_WORDS
  return memory.slab.subarray(from, memory.used)
}
