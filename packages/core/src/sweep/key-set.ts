/**
 * A set of keys by their raw digests: 32 bytes a key and no object for any of them, so that a million live keys cost about
 * 45 MiB where a `Set` of strings costs 160 (measured; ADR-005).
 *
 * Digests lie in chunks that never move, in the order they came; an index of their numbers (from 1; 0 is an empty slot), with
 * open addressing and linear probing, finds them. Growing makes a new index, which is an eighth of the digests' size.
 */
import { type BlobKey, digestOf } from '../key.js'
import { DIGEST_LENGTH } from '../limits.js'

const CHUNK_KEYS = 32 * 1024
const CAPACITY_MIN = 1_024

export class KeySet {
  readonly #chunks: Buffer[] = []
  #index = new Uint32Array(CAPACITY_MIN)
  #size = 0

  get size(): number {
    return this.#size
  }

  add(key: BlobKey): void {
    const digest = digestOf(key)
    const slot = this.#slotOf(digest)
    if (this.#index[slot] !== 0) return
    if (this.#size % CHUNK_KEYS === 0) this.#chunks.push(Buffer.allocUnsafeSlow(CHUNK_KEYS * DIGEST_LENGTH))
    digest.copy(this.#chunkOf(this.#size), offsetOf(this.#size))
    this.#index[slot] = ++this.#size
    if (this.#size * 3 > this.#index.length * 2) this.#grow()
  }

  has(key: BlobKey): boolean {
    return this.#index[this.#slotOf(digestOf(key))] !== 0
  }

  /** The slot that names the digest, or the empty one where it would go. Digests are uniform: their first bytes are the hash. */
  #slotOf(digest: Buffer): number {
    let slot = digest.readUInt32LE(0) % this.#index.length
    for (;;) {
      const number = this.#index[slot] as number
      if (number === 0 || this.#isAt(number - 1, digest)) return slot
      slot = (slot + 1) % this.#index.length
    }
  }

  #isAt(number: number, digest: Buffer): boolean {
    const start = offsetOf(number)
    return this.#chunkOf(number).compare(digest, 0, DIGEST_LENGTH, start, start + DIGEST_LENGTH) === 0
  }

  #grow(): void {
    const index = new Uint32Array(this.#index.length * 2)
    for (let number = 0; number < this.#size; number++) {
      let slot = this.#chunkOf(number).readUInt32LE(offsetOf(number)) % index.length
      while (index[slot] !== 0) slot = (slot + 1) % index.length
      index[slot] = number + 1
    }
    this.#index = index
  }

  #chunkOf(number: number): Buffer {
    return this.#chunks[Math.floor(number / CHUNK_KEYS)] as Buffer
  }
}

function offsetOf(number: number): number {
  return (number % CHUNK_KEYS) * DIGEST_LENGTH
}
