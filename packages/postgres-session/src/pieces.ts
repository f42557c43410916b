/**
 * A part of what the server says that comes in pieces, in memory that grows with what has come: not with what is announced, nor with how
 * many pieces there are.
 */
const EMPTY = Buffer.alloc(0)

export class Pieces {
  #bytes: Buffer = EMPTY
  #length = 0

  /** How much has come. */
  get length(): number {
    return this.#length
  }

  /** Copies as much of the bytes from there on as is missing of `needed`. Answers how much that was. */
  add(bytes: Buffer, at: number, needed: number): number {
    const taken = Math.min(bytes.length - at, needed - this.#length)
    const length = this.#length + taken
    if (length > this.#bytes.length) {
      const larger = Buffer.allocUnsafe(Math.min(needed, Math.max(length, 2 * this.#bytes.length)))
      this.#bytes.copy(larger, 0, 0, this.#length)
      this.#bytes = larger
    }
    bytes.copy(this.#bytes, this.#length, at, at + taken)
    this.#length = length
    return taken
  }

  /** What has come, without taking it away. */
  get bytes(): Buffer {
    return this.#bytes.subarray(0, this.#length)
  }

  /** What has come, which is the caller's; from now on it is another part. */
  take(): Buffer {
    const { bytes } = this
    this.#bytes = EMPTY
    this.#length = 0
    return bytes
  }
}
