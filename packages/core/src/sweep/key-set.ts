/**
 * A set of keys by their raw digests: 32 bytes a key and no object for any of them, so that a million live keys cost about
 * 45 MiB where a `Set` of strings costs 160 (measured; ADR-005).
 *
 * Digests lie in chunks that never move, in the order they came; an index of their numbers (from 1; 0 is an empty slot), with
 * open addressing and linear probing, finds them. Growing makes a new index, which is an eighth of the digests' size.
 *
 * A key is written as it is into the place behind the last one, and compared there word by word: an object or a call into native code
 * for each key that is added or asked for would be most of what a sweep of a million costs.
 */
import { type BlobKey, digestHexOf } from '../key.js'
import { DIGEST_LENGTH } from '../limits.js'

const CHUNK_KEYS = 32 * 1024
const CAPACITY_MIN = 1_024
const WORDS = DIGEST_LENGTH / Uint32Array.BYTES_PER_ELEMENT

/** The same memory twice: as words to compare, as bytes to write digits into. */
class Chunk {
  readonly words = new Uint32Array(CHUNK_KEYS * WORDS)
  readonly #bytes = Buffer.from(this.words.buffer)

  write(key: BlobKey, at: number): void {
    this.#bytes.write(digestHexOf(key), at * DIGEST_LENGTH, DIGEST_LENGTH, 'hex')
  }
}

export class KeySet {
  readonly #chunks: Chunk[] = []
  /** Its length is a power of two. */
  #index = new Uint32Array(CAPACITY_MIN)
  #size = 0

  get size(): number {
    return this.#size
  }

  add(key: BlobKey): void {
    const slot = this.#slotOf(key)
    if (this.#index[slot] !== 0) return
    this.#index[slot] = ++this.#size
    if (this.#size * 3 > this.#index.length * 2) this.#grow()
  }

  has(key: BlobKey): boolean {
    return this.#index[this.#slotOf(key)] !== 0
  }

  /** The slot that names the key, or the empty one where it would go. Leaves the digest in the place behind the last one. */
  #slotOf(key: BlobKey): number {
    if (this.#chunks.length * CHUNK_KEYS === this.#size) this.#chunks.push(new Chunk())
    const chunk = this.#chunkOf(this.#size)
    const at = this.#size % CHUNK_KEYS
    chunk.write(key, at)
    const { words } = chunk
    const index = this.#index
    const mask = index.length - 1
    // Digests are uniform: their first bytes are the hash.
    let slot = (words[at * WORDS] as number) & mask
    for (let number = index[slot] as number; number !== 0; number = index[slot] as number) {
      if (isSame(words, at, this.#chunkOf(number - 1).words, (number - 1) % CHUNK_KEYS)) break
      slot = (slot + 1) & mask
    }
    return slot
  }

  #grow(): void {
    const index = new Uint32Array(this.#index.length * 2)
    const mask = index.length - 1
    for (let number = 0; number < this.#size; number++) {
      let slot = (this.#chunkOf(number).words[(number % CHUNK_KEYS) * WORDS] as number) & mask
      while (index[slot] !== 0) slot = (slot + 1) & mask
      index[slot] = number + 1
    }
    this.#index = index
  }

  #chunkOf(number: number): Chunk {
    return this.#chunks[Math.floor(number / CHUNK_KEYS)] as Chunk
  }
}

function isSame(one: Uint32Array, at: number, other: Uint32Array, otherAt: number): boolean {
  for (let word = 0; word < WORDS; word++) {
    if (one[at * WORDS + word] !== other[otherAt * WORDS + word]) return false
  }
  return true
}
