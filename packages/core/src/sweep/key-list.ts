/**
 * Keys in the order they came, as raw digests one behind the other: 32 bytes a key and no object for any of them, where a list of texts
 * takes four times as much. They are given away in chunks.
 */
import { type Algorithm, readDigest } from '../key.js'
import { DIGEST_LENGTH, LIVE_BATCH } from '../limits.js'

const CHUNK_LENGTH = LIVE_BATCH * DIGEST_LENGTH

export class KeyList {
  readonly #algorithm: Algorithm
  readonly #full: Uint8Array[] = []
  #chunk: Uint8Array = new Uint8Array()
  #length = 0

  constructor(algorithm: Algorithm) {
    this.#algorithm = algorithm
  }

  /** Whether there is a full chunk. */
  get hasFull(): boolean {
    return this.#full.length > 0
  }

  /** Takes the written form of a key. @throws InvalidKeyError for anything else. */
  add(value: unknown): void {
    if (this.#length === this.#chunk.length) this.#chunk = Buffer.allocUnsafeSlow(CHUNK_LENGTH)
    const at = this.#length % CHUNK_LENGTH
    readDigest(value, this.#algorithm, this.#chunk, at)
    this.#length = at + DIGEST_LENGTH
    if (this.#length === CHUNK_LENGTH) this.#full.push(this.#chunk)
  }

  /** Gives full chunks away, the oldest first. */
  *full(): Generator<Uint8Array> {
    for (let chunk = this.#full.shift(); chunk !== undefined; chunk = this.#full.shift()) yield chunk
  }

  /** Gives everything away. */
  *all(): Generator<Uint8Array> {
    yield* this.full()
    const rest = this.#chunk.subarray(0, this.#length % CHUNK_LENGTH)
    this.#chunk = new Uint8Array()
    this.#length = 0
    if (rest.length > 0) yield rest
  }
}
