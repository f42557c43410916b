/**
 * One put from its first byte to its receipt, whoever moves the bytes: `put` pulls them from a producer, a `writer` has them
 * pushed. Content up to the threshold stays in memory; beyond it, it spills into the large tier.
 */
import type { Derivation } from './derive.js'
import type { Dispatch } from './dispatch.js'
import { BlobTooLargeError, KeyMismatchError, LengthMismatchError } from './errors.js'
import type { BlobKey } from './key.js'
import type { Pins } from './pins.js'
import type { Pool } from './pool.js'
import type { Content, Published, Publisher } from './publish.js'
import type { PutRequest } from './put-options.js'
import { Spill } from './spill.js'

/** What every put of a store works with. */
export interface PutParts {
  readonly pool: Pool
  readonly pins: Pins
  readonly publisher: Pick<Publisher, 'publish'>
  readonly derivation: Derivation
  readonly dispatch: Dispatch
  readonly stageTtlMs: number
}

export class PutSession {
  readonly #parts: PutParts
  readonly #request: PutRequest
  readonly #buffered = new Gathering()
  #spill: Spill | undefined
  #length = 0

  constructor(parts: PutParts, request: PutRequest) {
    this.#parts = parts
    this.#request = request
  }

  /** Decides what can be decided before the first byte: a length that no tier takes reads nothing. */
  begin(): void {
    const { length, maxLength } = this.#request
    if (length === undefined) return
    if (length > maxLength) throw tooLarge(maxLength)
    this.#parts.dispatch.tierOf(length)
  }

  /** Takes a chunk; it is the caller's again when this resolves. */
  async write(chunk: Uint8Array): Promise<void> {
    const { length, maxLength, onProgress } = this.#request
    const chunkLength = chunk.length
    const total = this.#length + chunkLength
    if (length !== undefined && total > length) throw new LengthMismatchError(length, total)
    if (total > maxLength) throw tooLarge(maxLength)
    const tier = this.#parts.dispatch.tierOf(Math.max(total, length ?? 0))
    this.#length = total
    if (tier === 'kv') this.#buffered.add(chunk, length)
    else await this.#spillOver(chunk, chunkLength)
    onProgress?.({ bytes: total })
  }

  /** Publishes what was written. Rejects with everything taken back, unless the outcome is unknown. */
  async commit(): Promise<Published> {
    const { length } = this.#request
    if (length !== undefined && this.#length < length) throw new LengthMismatchError(length, this.#length)
    if (this.#spill !== undefined) return this.#commitSpilled(this.#spill)
    return storeInline(this.#parts, this.#request, this.#buffered.take())
  }

  /** Takes everything back. */
  async discard(): Promise<void> {
    this.#buffered.take()
    await this.#spill?.discard()
  }

  async #spillOver(chunk: Uint8Array, chunkLength: number): Promise<void> {
    if (this.#spill === undefined) {
      const { pool, pins, stageTtlMs, derivation } = this.#parts
      const { length } = this.#request
      this.#spill = await Spill.open({ pool, pins, stageTtlMs, hasher: derivation.hasher(), length })
      const earlier = this.#buffered.take()
      await this.#spill.write(earlier, earlier.length)
    }
    await this.#spill.write(chunk, chunkLength)
  }

  async #commitSpilled(spill: Spill): Promise<Published> {
    const { expect, pin, verify, signal } = this.#request
    const key = await spill.finish()
    assertExpected(expect, key)
    signal?.throwIfAborted()
    const locator = await spill.seal(key)
    const bytes = { kind: 'staged', stage: spill.stage, locator } as const
    const content = { key, length: this.#length, bytes, pin, verify }
    const published = (await this.#parts.publisher.publish(content)) as Published
    const { place } = published.entry
    if (place.tier === 'large' && place.locator === locator) spill.published()
    else await spill.discard()
    this.#spill = undefined
    return published
  }
}

/** Bytes gathered in memory, copied as they come: many tiny chunks cost no more than their bytes. */
class Gathering {
  #bytes = Buffer.alloc(0)
  #length = 0

  /** `expected` is the length to come in all, where it is known. */
  add(chunk: Uint8Array, expected: number | undefined): void {
    const needed = this.#length + chunk.length
    if (needed > this.#bytes.length) {
      const grown = Buffer.allocUnsafeSlow(expected ?? Math.max(needed, 2 * this.#bytes.length))
      grown.set(this.#bytes.subarray(0, this.#length))
      this.#bytes = grown
    }
    this.#bytes.set(chunk, this.#length)
    this.#length = needed
  }

  /** Hands the bytes over and starts anew. */
  take(): Buffer {
    const taken = this.#bytes.subarray(0, this.#length)
    this.#bytes = Buffer.alloc(0)
    this.#length = 0
    return taken
  }
}

/**
 * Publishes a body that goes inline. `body` must be nobody else's until this settles.
 * @throws what the checks of the key throw, at once: its callers are `async`.
 */
export function storeInline(parts: PutParts, request: PutRequest, body: Buffer): Promise<Published> {
  const { expect, signal, pin, verify } = request
  const key = parts.derivation.key(body)
  assertExpected(expect, key)
  signal?.throwIfAborted()
  const content: Content = { key, length: body.length, bytes: { kind: 'inline', body }, pin, verify }
  // With its bytes at hand a publication always ends in an entry.
  return parts.publisher.publish(content) as Promise<Published>
}

export function assertExpected(expected: BlobKey | undefined, actual: BlobKey): void {
  if (expected !== undefined && expected !== actual) throw new KeyMismatchError(expected, actual)
}

export function tooLarge(maxLength: number): BlobTooLargeError {
  return new BlobTooLargeError(maxLength, 'raise maxLength if longer content is meant to be kept')
}
