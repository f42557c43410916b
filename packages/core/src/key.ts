/**
 * Keys: `algorithm:digest`, the digest in 64 lower-case hexadecimal digits.
 *
 * There is one written form and one parser. A string becomes a `BlobKey` here or nowhere, so whatever holds a
 * `BlobKey` may build a path, a row or a lock from it without looking again.
 */
import { iterable } from './arguments.js'
import { InvalidKeyError } from './errors.js'
import { DIGEST_LENGTH } from './limits.js'

declare const brand: unique symbol

/** The name of a blob, derived from its content: `blake3:` or `sha256:` and 64 hexadecimal digits. */
export type BlobKey = string & { readonly [brand]: 'BlobKey' }

/** The derivations there are. A pool uses exactly one, recorded when it is made (ADR-002). */
export type Algorithm = 'blake3' | 'sha256'

export const ALGORITHMS: readonly Algorithm[] = ['blake3', 'sha256']

/** Both algorithm names have six letters; the digest starts after the colon. */
const DIGEST_START = 7
const WRITTEN_LENGTH = DIGEST_START + 2 * DIGEST_LENGTH

const DIGITS = '0123456789abcdef'
const NO_DIGIT = 0xff
const COLON = ':'.charCodeAt(0)
/** The value of each digit, by any code: looked up, a key is read in a third of the time of a regular expression, and a sweep reads millions. */
const VALUE = new Uint8Array(0x1_0000).fill(NO_DIGIT)
for (const [value, digit] of [...DIGITS].entries()) VALUE[digit.charCodeAt(0)] = value

/** Whether `value` is the written form of a key, of either algorithm. */
export function isKey(value: unknown): value is BlobKey {
  if (!isWritten(value)) return false
  if (!value.startsWith('blake3:') && !value.startsWith('sha256:')) return false
  for (let at = DIGEST_START; at < WRITTEN_LENGTH; at++) {
    if (VALUE[value.charCodeAt(at)] === NO_DIGIT) return false
  }
  return true
}

/**
 * Reads the written form of a key.
 * @throws InvalidKeyError (`ERR_BLOB_INVALID_KEY`) for anything else, without repeating what was given.
 */
export function parseKey(value: unknown, algorithm?: Algorithm): BlobKey {
  return keyOf(value, algorithm)
}

function keyOf(value: unknown, expected?: Algorithm, index?: number): BlobKey {
  const place = index === undefined ? {} : { index }
  if (!isKey(value)) throw new InvalidKeyError('malformed', place)
  if (expected !== undefined && !value.startsWith(expected)) {
    throw new InvalidKeyError('algorithm', { expected, ...place })
  }
  return value
}

/** Reads many, each once. @throws InvalidArgumentError for what is no list, InvalidKeyError with its `index` for what is no key. */
export function parseKeys(values: Iterable<string>, algorithm: Algorithm): BlobKey[] {
  return [...new Set(Array.from(iterable('keys', values), (value, index) => keyOf(value, algorithm, index)))]
}

/** How far the letters are from where digits would go on. */
const LETTERS_APART = 'a'.charCodeAt(0) - ':'.charCodeAt(0)
const encoder = new TextEncoder()
const written = new Uint8Array(WRITTEN_LENGTH)
const view = new DataView(written.buffer)

/**
 * Reads the written form of a key and puts its digest into `bytes`, from an offset on: without an object, and four digits at a time,
 * for a sweep reads millions (0.09 microseconds a key; digit by digit 0.15, as a key first and its digest then 0.3).
 * @throws InvalidKeyError as `parseKey` does, having written something that means nothing.
 */
export function readDigest(value: unknown, algorithm: Algorithm, bytes: Uint8Array, offset: number): void {
  // As many bytes as letters: each is ASCII, and none is left from the key before.
  let wrong = isWritten(value) && encoder.encodeInto(value, written).written === WRITTEN_LENGTH ? 0 : 1
  for (let from = DIGEST_START, to = offset; from < WRITTEN_LENGTH; from += 4, to += 2) {
    const four = view.getInt32(from, true)
    // A letter has bit 6, and its low bits are 9 less than its value.
    const values = (four & 0x0f0f0f0f) + Math.imul((four >>> 6) & 0x01010101, 9)
    // Digits are what is below 16 and written as it was.
    const letters = ((values + 0x06060606) >>> 4) & 0x01010101
    wrong |= (values & 0xf0f0f0f0) | (four ^ (values + 0x30303030 + Math.imul(letters, LETTERS_APART)))
    bytes[to] = (values << 4) | (values >>> 8)
    bytes[to + 1] = (values >>> 12) | (values >>> 24)
  }
  const isRead = wrong === 0 && written[DIGEST_START - 1] === COLON && (value as string).startsWith(algorithm)
  if (!isRead) parseKey(value, algorithm)
}

function isWritten(value: unknown): value is string {
  return typeof value === 'string' && value.length === WRITTEN_LENGTH
}

/** Writes a digest of 32 bytes as a key. */
export function formatKey(algorithm: Algorithm, digest: Uint8Array): BlobKey {
  if (digest.byteLength !== DIGEST_LENGTH) throw new InvalidKeyError('malformed')
  return keyOfHex(algorithm, Buffer.from(digest.buffer, digest.byteOffset, digest.byteLength).toString('hex'))
}

/** Writes a digest that is 64 lower-case hexadecimal digits already as a key. */
export function keyOfHex(algorithm: Algorithm, hex: string): BlobKey {
  return `${algorithm}:${hex}` as BlobKey
}

/** The 32 raw bytes of a key, in a buffer of its own. */
export function digestOf(key: BlobKey): Buffer {
  return Buffer.from(key.slice(DIGEST_START), 'hex')
}

/** The 64 hexadecimal digits of a key. */
export function digestHexOf(key: BlobKey): string {
  return key.slice(DIGEST_START)
}

/** The derivation a key names. */
export function algorithmOf(key: BlobKey): Algorithm {
  return key.slice(0, DIGEST_START - 1) as Algorithm
}
