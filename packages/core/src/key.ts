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

/** 1 at the code of each digit: looked up, a key is read in a third of the time of a regular expression, and a sweep reads millions. */
const IS_DIGIT = Uint8Array.from({ length: 128 }, (_, code) => Number(/[0-9a-f]/.test(String.fromCharCode(code))))

/** Whether `value` is the written form of a key, of either algorithm. */
export function isKey(value: unknown): value is BlobKey {
  if (typeof value !== 'string' || value.length !== WRITTEN_LENGTH) return false
  if (!value.startsWith('blake3:') && !value.startsWith('sha256:')) return false
  for (let at = DIGEST_START; at < WRITTEN_LENGTH; at++) {
    if (IS_DIGIT[value.charCodeAt(at)] !== 1) return false
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
