/**
 * One pass over the bytes of an entry: lazy, verified where it covers the whole, and indifferent to where the bytes lie.
 *
 * A whole pass hashes as it goes and withholds its last chunk until the hash agrees, so it never ends as if complete
 * when it is not. When a body is gone the catalog is asked again: the entry may have moved (then the pass goes on where
 * it was, the content being the same), may have been removed, or may be damaged.
 */
import type { CheckedReader } from './checked-bodies.js'
import type { Derivation, Hasher } from './derive.js'
import type { Entry, Place } from './engine.js'
import { BlobRemovedError, CorruptBlobError, EngineError } from './errors.js'
import type { BlobKey } from './key.js'
import { WINDOW_LENGTH } from './limits.js'
import type { Pool } from './pool.js'
import type { Range } from './range.js'

/** An entry as it was found, with its body where that is inline and was not given away. */
export interface FoundEntry {
  readonly entry: Entry
  body?: Uint8Array | undefined
}

export interface ReadingParts {
  readonly pool: Pool
  readonly derivation: Derivation
  readonly found: FoundEntry
  readonly range: Range
  readonly verify: boolean
}

export class Reading {
  readonly #pool: Pool
  readonly #range: Range
  readonly #hasher: Hasher | undefined
  #found: FoundEntry
  #reader: CheckedReader | undefined
  #offset: number
  #done = false

  constructor({ pool, derivation, found, range, verify }: ReadingParts) {
    this.#pool = pool
    this.#found = found
    this.#range = range
    this.#offset = range.start
    assertLength(found.entry)
    const whole = range.start === 0 && range.end === found.entry.length
    this.#hasher = whole && verify ? derivation.hasher() : undefined
  }

  /** The next chunk, in a buffer that is the caller's; `undefined` at the end. */
  async next(): Promise<Uint8Array | undefined> {
    if (this.#done) return undefined
    if (this.#offset === this.#range.end) {
      this.#verified()
      return undefined
    }
    const chunk = await this.#chunk()
    this.#offset += chunk.length
    this.#hasher?.update(chunk)
    if (this.#offset === this.#range.end) {
      this.#verified()
      await this.close()
    }
    return chunk
  }

  /** Frees what is open; idempotent. `undefined` where there is nothing to wait for. */
  close(): Promise<void> | undefined {
    const reader = this.#reader
    this.#reader = undefined
    return reader?.close()
  }

  async #chunk(): Promise<Uint8Array> {
    for (;;) {
      const { entry, body } = this.#found
      if (body !== undefined) return this.#inlineChunk(body)
      if (entry.place.tier === 'kv') {
        await this.#lookAgain()
        continue
      }
      const range = { start: this.#offset, end: this.#range.end }
      this.#reader ??= this.#pool.bodies.read(entry.place.locator, range, entry.key)
      let chunk: Uint8Array | undefined
      try {
        chunk = await this.#reader.next()
      } catch (error) {
        await this.#foundGone(error)
        continue
      }
      if (chunk === undefined) throw this.#short(this.#offset)
      return this.#fitting(chunk)
    }
  }

  #inlineChunk(body: Uint8Array): Uint8Array {
    const { entry } = this.#found
    if (body.length !== entry.length) throw this.#short(body.length)
    return Uint8Array.prototype.slice.call(body, this.#offset, Math.min(this.#offset + WINDOW_LENGTH, this.#range.end))
  }

  /** After a body was gone: goes on at the entry's new place, or says what became of it. */
  async #foundGone(error: unknown): Promise<void> {
    await this.close()
    const { entry } = this.#found
    if (!(error instanceof EngineError)) throw error
    // Without a cause it is not the medium that is damaged, but the engine that broke its contract.
    if (error.kind === 'corrupt' && error.cause !== undefined)
      throw new CorruptBlobError(entry.key, 'the medium cannot give its bytes back', error)
    if (error.kind !== 'gone') throw error
    await this.#lookAgain()
    if (samePlace(this.#found.entry.place, entry.place)) {
      throw new CorruptBlobError(entry.key, 'its body is missing from the medium', error)
    }
  }

  /** Asks the catalog again where the bytes are. */
  async #lookAgain(): Promise<void> {
    const { key, length } = this.#found.entry
    const now = await this.#pool.catalog.read(key)
    if (now === undefined) throw new BlobRemovedError(key)
    if (now.entry.length !== length) throw this.#short(now.entry.length)
    this.#found = now
  }

  #fitting(chunk: Uint8Array): Uint8Array {
    const wanted = this.#range.end - this.#offset
    if (chunk.length <= wanted) return chunk
    throw new EngineError('large tier', 'read', 'corrupt', 'it broke its contract (BODY-READ-1: more than the range)', {
      key: this.#found.entry.key
    })
  }

  #verified(): void {
    this.#done = true
    const { key } = this.#found.entry
    const actual = this.#hasher?.key() ?? key
    if (actual !== key) throw wrongBytes(key)
  }

  #short(held: number): CorruptBlobError {
    return shortBody(this.#found.entry, held)
  }
}

/**
 * The bytes of a range of an inline body: what a pass over it would give, without being one. They are still the blob's.
 * @throws CorruptBlobError as a pass does.
 */
export function inlineBytes(
  body: Uint8Array,
  range: Range,
  { found, derivation, verify }: Pick<ReadingParts, 'found' | 'derivation' | 'verify'>
): Uint8Array {
  const { length } = found.entry
  if (body.length !== length) throw shortBody(found.entry, body.length)
  if (range.start > 0 || range.end < length) return body.subarray(range.start, range.end)
  assertWhole(body, range, { found, derivation, verify })
  return body
}

/** Verifies the bytes of a range, if that is the whole and the whole is to be verified. @throws CorruptBlobError */
export function assertWhole(
  bytes: Uint8Array,
  range: Range,
  { found, derivation, verify }: Pick<ReadingParts, 'found' | 'derivation' | 'verify'>
): void {
  const { key, length } = found.entry
  const isWhole = range.start === 0 && range.end === length
  if (isWhole && verify && derivation.key(bytes) !== key) throw wrongBytes(key)
}

interface DeriveParts {
  readonly pool: Pool
  readonly derivation: Derivation
  readonly key: BlobKey
  /** Asked after each chunk; throws to stop. */
  readonly assertGoing?: () => void
}

/** Reads an entry to its end, verified; one that is gone has nothing to verify. @throws CorruptBlobError and what reading throws. */
export async function deriveAgain({ pool, derivation, key, assertGoing }: DeriveParts): Promise<void> {
  const found = await pool.catalog.read(key)
  if (found === undefined) return
  const range = { start: 0, end: found.entry.length }
  const reading = new Reading({ pool, derivation, found, range, verify: true })
  try {
    while ((await reading.next()) !== undefined) assertGoing?.()
  } finally {
    await reading.close()
  }
}

/** @throws CorruptBlobError for a record whose length is none. */
export function assertLength({ key, length }: Entry): void {
  if (!Number.isSafeInteger(length) || length < 0)
    throw new CorruptBlobError(key, 'its record claims a length that is none')
}

function shortBody({ key, length }: Entry, held: number): CorruptBlobError {
  return new CorruptBlobError(key, `its record claims ${length} bytes, the medium holds ${held}`)
}

function wrongBytes(key: BlobKey): CorruptBlobError {
  return new CorruptBlobError(key, 'the stored bytes are not those of the key')
}

function samePlace(a: Place, b: Place): boolean {
  return a.tier === 'kv' ? b.tier === 'kv' : b.tier === 'large' && a.locator === b.locator
}
