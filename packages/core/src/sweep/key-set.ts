/**
 * A set of keys by their raw digests: 32 bytes a key and no object for any of them, so that a million live keys cost about
 * 45 MiB where a `Set` of strings costs 160 (measured; ADR-005).
 *
 * Digests lie in chunks that never move, in the order they came; an index of their numbers (from 1; 0 is an empty slot), with
 * open addressing and linear probing, finds them. Growing makes a new index, which is an eighth of the digests' size.
 *
 * A key is read into the place behind the last one, and compared there word by word: an object or a call into native code for each key
 * that is added or asked for would be most of what a sweep of a million costs.
 */
import { randomFillSync } from 'node:crypto'
import { type Algorithm, type BlobKey, readDigest } from '../key.js'
import { DIGEST_LENGTH } from '../limits.js'

const CHUNK_KEYS = 32 * 1024
const CAPACITY_MIN = 1_024
const WORDS = DIGEST_LENGTH / Uint32Array.BYTES_PER_ELEMENT

/** The same memory twice: as words to compare, as bytes to read digests into. */
class Chunk {
  readonly words = new Uint32Array(CHUNK_KEYS * WORDS)
  readonly bytes = new Uint8Array(this.words.buffer)
}

export class KeySet {
  readonly #algorithm: Algorithm
  readonly #chunks: Chunk[] = []
  readonly #multipliers: Uint32Array
  /** Its length is a power of two. */
  #index = new Uint32Array(CAPACITY_MIN)
  #size = 0

  constructor(algorithm: Algorithm, multipliers = randomMultipliers()) {
    this.#algorithm = algorithm
    this.#multipliers = multipliers
  }

  get size(): number {
    return this.#size
  }

  /** @throws InvalidKeyError for what is no key of this set's derivation: it may be anybody's word. */
  add(key: unknown): void {
    const slot = this.#slotOf(key)
    if (this.#index[slot] !== 0) return
    this.#index[slot] = ++this.#size
    if (this.#size * 3 > this.#index.length * 2) this.#grow()
  }

  has(key: BlobKey): boolean {
    return this.#index[this.#slotOf(key)] !== 0
  }

  /** The slot that names the key, or the empty one where it would go. Leaves the digest in the place behind the last one. */
  #slotOf(key: unknown): number {
    if (this.#chunks.length * CHUNK_KEYS === this.#size) this.#chunks.push(new Chunk())
    const chunk = this.#chunkOf(this.#size)
    const at = this.#size % CHUNK_KEYS
    readDigest(key, this.#algorithm, chunk.bytes, at * DIGEST_LENGTH)
    const index = this.#index
    const mask = index.length - 1
    let slot = hashOf(chunk.words, at, this.#multipliers) >>> shiftFor(index)
    for (let number = index[slot] as number; number !== 0; number = index[slot] as number) {
      if (isSame(chunk, at, this.#chunkOf(number - 1), (number - 1) % CHUNK_KEYS)) break
      slot = (slot + 1) & mask
    }
    return slot
  }

  #grow(): void {
    const index = new Uint32Array(this.#index.length * 2)
    const mask = index.length - 1
    for (let number = 0; number < this.#size; number++) {
      let slot = hashOf(this.#chunkOf(number).words, number % CHUNK_KEYS, this.#multipliers) >>> shiftFor(index)
      while (index[slot] !== 0) slot = (slot + 1) & mask
      index[slot] = number + 1
    }
    this.#index = index
  }

  #chunkOf(number: number): Chunk {
    return this.#chunks[Math.floor(number / CHUNK_KEYS)] as Chunk
  }
}

/**
 * A random multiple of each word, added up; the first bits of that are the hash. Digests are uniform, but those that a source says need not be
 * digests of anything: its users may choose them alike in some bits. And keys often come in their order, from an index of the application's.
 * Where many want the same slots, each walks past all before it: a million took minutes.
 */
export function hashOf(words: Uint32Array, number: number, multipliers: Uint32Array): number {
  let sum = 0
  for (let word = 0; word < WORDS; word++) {
    sum = (sum + Math.imul(words[number * WORDS + word] as number, multipliers[word] as number)) | 0
  }
  return sum
}

/** Odd, so that no bit of a word is lost. */
export function randomMultipliers(): Uint32Array {
  return randomFillSync(new Uint32Array(WORDS)).map(multiplier => multiplier | 1)
}

/** By which a hash of 32 bits becomes a slot. */
function shiftFor(index: Uint32Array): number {
  return Math.clz32(index.length) + 1
}

function isSame(one: Chunk, at: number, other: Chunk, otherAt: number): boolean {
  for (let word = 0; word < WORDS; word++) {
    if (one.words[at * WORDS + word] !== other.words[otherAt * WORDS + word]) return false
  }
  return true
}
