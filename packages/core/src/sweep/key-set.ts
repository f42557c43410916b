/**
 * A set of keys by their raw digests: 32 bytes a key and no object for any of them, so that a million live keys cost about
 * 50 MiB where a `Set` of strings costs 160 (measured; ADR-005).
 *
 * A million digests are more than a processor's caches hold. So they lie in parts by their first byte, and a sweep, which asks
 * in the order of keys, asks one part after the other. What is added is only gathered; which of it is new, a part looks when it is asked, or when
 * it has gathered half of what it has. With every key looked for among all others when it came, a sweep of a million entries took 1.4 times as long.
 */
import { type Algorithm, type BlobKey, readDigest } from '../key.js'
import { DigestPart, firstByteOf, type Memory, randomMultipliers, WORDS } from './digest-part.js'

/** So many are gathered before there are parts: fewer fit the caches as they are, and a small set shall be made fast. */
const WHOLE_MAX = 32 * 1024
const PARTS = 256
/** Digests that a part may gather in any case: 2 MiB in all parts together. */
const GATHERED_MAX = 256

export class KeySet {
  readonly #algorithm: Algorithm
  readonly #memory: Memory
  /** The digest that was read last: as words to compare, as bytes to read into. */
  readonly #words = new Int32Array(WORDS)
  readonly #bytes = new Uint8Array(this.#words.buffer)
  /** One, or one for each first byte. */
  #parts: readonly DigestPart[]

  constructor(algorithm: Algorithm, multipliers = randomMultipliers()) {
    this.#algorithm = algorithm
    this.#memory = { multipliers, slab: new Int32Array(), used: 0 }
    this.#parts = [new DigestPart(this.#memory, WHOLE_MAX)]
  }

  /** How many different keys there are. */
  get size(): number {
    return this.#parts.reduce((size, part) => size + part.size, 0)
  }

  /**
   * How many digests there is memory for. However often a source repeats its keys, never more than one and a half for each
   * different key and 384 for each part, or what is gathered before there are parts.
   */
  get capacity(): number {
    return this.#parts.reduce((capacity, part) => capacity + part.capacity, 0)
  }

  /** @throws InvalidKeyError for what is no key of this set's derivation: it may be anybody's word. */
  add(key: unknown): void {
    const part = this.#partOf(key)
    part.gather(this.#words, 0)
    if (!part.isFull) return
    if (this.#parts.length === 1) this.#divide(part)
    else part.settle()
  }

  has(key: BlobKey): boolean {
    return this.#partOf(key).has(this.#words)
  }

  /** Leaves the digest in the words. */
  #partOf(key: unknown): DigestPart {
    readDigest(key, this.#algorithm, this.#bytes, 0)
    return this.#parts[firstByteOf(this.#words, 0) % this.#parts.length] as DigestPart
  }

  #divide(whole: DigestPart): void {
    const parts = Array.from({ length: PARTS }, () => new DigestPart(this.#memory, GATHERED_MAX))
    whole.divideAmong(parts)
    this.#parts = parts
  }
}
