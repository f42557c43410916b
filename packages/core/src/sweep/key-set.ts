/**
 * A set of keys by their raw digests in one flat buffer: 32 bytes a key and no object for any of them, so that a million
 * live keys cost about 64 MiB where a `Set` of strings costs 160 (measured; ADR-005).
 *
 * Open addressing with linear probing, at most two thirds full. A slot is empty when all its bytes are zero; the all-zero
 * digest itself, which no content is known to have, is kept apart.
 */
import { type BlobKey, digestOf } from '../key.js'
import { DIGEST_LENGTH } from '../limits.js'

const CAPACITY_MIN = 1_024

export class KeySet {
  #slots = Buffer.alloc(CAPACITY_MIN * DIGEST_LENGTH)
  #capacity = CAPACITY_MIN
  #size = 0
  #hasZero = false

  get size(): number {
    return this.#size + (this.#hasZero ? 1 : 0)
  }

  add(key: BlobKey): void {
    this.#insert(digestOf(key))
    if (this.#size * 3 > this.#capacity * 2) this.#grow()
  }

  has(key: BlobKey): boolean {
    const digest = digestOf(key)
    return isZero(digest, 0) ? this.#hasZero : this.#compare(this.#slotOf(digest, 0), digest, 0)
  }

  #insert(digest: Buffer, offset = 0): void {
    if (isZero(digest, offset)) {
      this.#hasZero = true
      return
    }
    const slot = this.#slotOf(digest, offset)
    if (this.#compare(slot, digest, offset)) return
    digest.copy(this.#slots, slot * DIGEST_LENGTH, offset, offset + DIGEST_LENGTH)
    this.#size++
  }

  /** The slot that holds the digest, or the empty one where it would go. Digests are uniform: their first bytes are the hash. */
  #slotOf(digest: Buffer, offset: number): number {
    let slot = digest.readUInt32LE(offset) % this.#capacity
    while (!isZero(this.#slots, slot * DIGEST_LENGTH) && !this.#compare(slot, digest, offset))
      slot = (slot + 1) % this.#capacity
    return slot
  }

  #compare(slot: number, digest: Buffer, offset: number): boolean {
    const start = slot * DIGEST_LENGTH
    return this.#slots.compare(digest, offset, offset + DIGEST_LENGTH, start, start + DIGEST_LENGTH) === 0
  }

  #grow(): void {
    const old = this.#slots
    this.#capacity *= 2
    this.#slots = Buffer.alloc(this.#capacity * DIGEST_LENGTH)
    this.#size = 0
    for (let offset = 0; offset < old.length; offset += DIGEST_LENGTH)
      if (!isZero(old, offset)) this.#insert(old, offset)
  }
}

const ZERO = Buffer.alloc(DIGEST_LENGTH)

function isZero(bytes: Buffer, offset: number): boolean {
  return bytes[offset] === 0 && bytes.compare(ZERO, 0, DIGEST_LENGTH, offset, offset + DIGEST_LENGTH) === 0
}
