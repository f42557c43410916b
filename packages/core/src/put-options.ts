/** What a put takes beside its content, checked, and what it gives back. */
import { optionalBoolean, optionalFunction, optionalSignal, optionalWholeNumber, optionsObject } from './arguments.js'
import { PutError } from './errors.js'
import { type Algorithm, type BlobKey, parseKey } from './key.js'
import type { Pin } from './pin.js'

export interface PutOptions {
  /** The length in bytes, where it is known beforehand; content of another length is refused. */
  readonly length?: number
  /** The key the content must have; other content is refused. */
  readonly expect?: string
  /** Longest content accepted by this put, in bytes; at most the store's own `maxLength`. */
  readonly maxLength?: number
  readonly signal?: AbortSignal
  /** Told how many bytes have been taken so far. An error that it throws fails the put. */
  readonly onProgress?: (progress: { readonly bytes: number }) => void
  /** Whether the receipt pins the key until its release. Default true. */
  readonly pin?: boolean
  /**
   * Whether an entry that is there already is read back before it is trusted, and replaced if it is damaged. Default false: a
   * missing body, or one of the wrong length, is noticed and repaired in any case.
   */
  readonly verify?: boolean
}

/** What a put leaves in the caller's hand. */
export interface PutReceipt {
  readonly key: BlobKey
  /** Length of the content in bytes. */
  readonly length: number
  /** Whether the entry's bytes are those of this put: it made the entry, or healed a broken one; else it found it there. */
  readonly created: boolean
  /** The pin that protects the key until it is released; `undefined` after `put(content, { pin: false })`. */
  readonly pin: Pin | undefined
  /** Releases the pin; idempotent. */
  release(): Promise<void>
  [Symbol.asyncDispose](): Promise<void>
}

export interface PutRequest {
  readonly length: number | undefined
  readonly expect: BlobKey | undefined
  readonly maxLength: number
  readonly signal: AbortSignal | undefined
  readonly onProgress: PutOptions['onProgress']
  readonly pin: boolean
  readonly verify: boolean
}

interface PutDefaults {
  readonly algorithm: Algorithm
  readonly maxLength: number
}

/** @throws InvalidArgumentError, InvalidKeyError, or the signal's own reason if it has fired already. */
export function putRequestOf(given: PutOptions | undefined, defaults: PutDefaults): PutRequest {
  const options = optionsObject('options', given)
  const signal = optionalSignal('options.signal', options.signal)
  const request = {
    length:
      options.length === undefined ? undefined : optionalWholeNumber('options.length', options.length, 0, { min: 0 }),
    expect: options.expect === undefined ? undefined : parseKey(options.expect, defaults.algorithm),
    maxLength: Math.min(
      defaults.maxLength,
      optionalWholeNumber('options.maxLength', options.maxLength, defaults.maxLength, { min: 0 })
    ),
    signal,
    onProgress: optionalFunction('options.onProgress', options.onProgress),
    pin: optionalBoolean('options.pin', options.pin, true),
    verify: optionalBoolean('options.verify', options.verify, false)
  }
  signal?.throwIfAborted()
  return request
}

/** `pin: false` leaves the key to the window delay alone, which must therefore be there. */
export function assertUnpinnedAllowed(form: 'inline' | 'durable', windowDelayMs: number): void {
  if (form === 'inline' || windowDelayMs === 0) {
    const why = form === 'inline' ? 'a pool in memory has no window delay' : 'the window delay of this pool is 0'
    throw new PutError(
      'ERR_BLOB_PIN_REQUIRED',
      `a put without a pin has no protection here: ${why}; leave out { pin: false }`
    )
  }
}
