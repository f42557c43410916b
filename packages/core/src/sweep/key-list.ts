/**
 * Keys in the order they came, as raw digests: 32 bytes a key and no object for any of them, where a list of texts takes four times as
 * much. Digests lie in chunks that never move.
 */
import { type Algorithm, type BlobKey, digestHexOf, formatKey } from '../key.js'
import { DIGEST_LENGTH } from '../limits.js'

const CHUNK_KEYS = 32 * 1024

export class KeyList {
  readonly #algorithm: Algorithm
  readonly #chunks: Buffer[] = []
  #size = 0

  constructor(algorithm: Algorithm) {
    this.#algorithm = algorithm
  }

  add(key: BlobKey): void {
    const at = this.#size++ % CHUNK_KEYS
    if (at === 0) this.#chunks.push(Buffer.allocUnsafeSlow(CHUNK_KEYS * DIGEST_LENGTH))
    this.#chunks.at(-1)?.write(digestHexOf(key), at * DIGEST_LENGTH, DIGEST_LENGTH, 'hex')
  }

  /** All of them, so many at a time. */
  *pages(length: number): Generator<BlobKey[]> {
    for (let from = 0; from < this.#size; from += length) {
      yield Array.from({ length: Math.min(length, this.#size - from) }, (_, i) => this.#at(from + i))
    }
  }

  #at(number: number): BlobKey {
    const start = (number % CHUNK_KEYS) * DIGEST_LENGTH
    const chunk = this.#chunks[Math.floor(number / CHUNK_KEYS)] as Buffer
    return formatKey(this.#algorithm, chunk.subarray(start, start + DIGEST_LENGTH))
  }
}
