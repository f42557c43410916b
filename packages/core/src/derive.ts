/**
 * Derivation: content -> key. The only place that knows a hash library.
 *
 * BLAKE3 comes from a native package where one is installed and proves itself on a known input, else from WebAssembly;
 * both give the same digest. The one that is not used is not loaded: WebAssembly is the faster one for a few hundred bytes, by a
 * microsecond a call, and costs 13 milliseconds of processor to load.
 */
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import type * as Wasm from 'blake3-wasm'
import { type Algorithm, type BlobKey, formatKey, keyOfHex } from './key.js'

/** Derives one key from chunks; every instance is independent of all others. */
export interface Hasher {
  /** The chunk is read before this returns. */
  update(chunk: Uint8Array): void
  /** Ends the hasher. */
  key(): BlobKey
}

export interface Derivation {
  readonly algorithm: Algorithm
  hasher(): Hasher
  /** The key of content that lies in memory. */
  key(content: Uint8Array): BlobKey
}

interface Digester {
  update(chunk: Buffer): unknown
  digest(): Uint8Array
}

/** The first test vector of the BLAKE3 paper that is longer than a block: 1024 bytes of the repeating pattern 0…250. */
const PROOF_INPUT = Buffer.from(Array.from({ length: 1024 }, (_, i) => i % 251))
const PROOF_DIGEST = '42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7'

interface NativeBlake {
  Blake3Hasher: new () => { update(chunk: Buffer): unknown; digestBuffer(): Buffer; digest(): string; reset(): void }
}

const require = createRequire(import.meta.url)
const native = loadNative()

function loadNative(): NativeBlake | undefined {
  try {
    const candidate = require('@napi-rs/blake-hash') as NativeBlake
    const hasher = new candidate.Blake3Hasher()
    hasher.update(PROOF_INPUT)
    const digests = [hasher.digestBuffer().toString('hex'), hexByShared(candidate)(PROOF_INPUT)]
    return digests.every(digest => digest === PROOF_DIGEST) ? candidate : undefined
  } catch {
    // An optional dependency: a platform without a prebuilt binary works all the same, more slowly.
    return undefined
  }
}

function nativeBlake3(from: NativeBlake): Digester {
  const hasher = new from.Blake3Hasher()
  return { update: chunk => hasher.update(chunk), digest: () => hasher.digestBuffer() }
}

/**
 * Hashes content that lies in memory, in one go. One hasher serves all, made ready anew each time, and the digits come as a text: a hasher
 * or a digest in a buffer of its own would be an object of the native package's for each, which the garbage collector has to hand back.
 */
function hexByShared(from: NativeBlake): (content: Buffer) => string {
  const hasher = new from.Blake3Hasher()
  return content => {
    hasher.reset()
    hasher.update(content)
    return hasher.digest()
  }
}

function wasmBlake3({ createHash }: typeof Wasm): Digester {
  const hasher = createHash()
  return { update: chunk => hasher.update(chunk), digest: () => hasher.digest() }
}

/** The same bytes as a Buffer, not a copy: what the hash libraries take. */
function asBuffer(chunk: Uint8Array): Buffer {
  return Buffer.isBuffer(chunk) ? chunk : Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
}

function derivation(algorithm: Algorithm, digester: () => Digester, hexOf: (content: Buffer) => string): Derivation {
  return {
    algorithm,
    hasher: () => {
      const inner = digester()
      return {
        update: chunk => void inner.update(asBuffer(chunk)),
        key: () => formatKey(algorithm, inner.digest())
      }
    },
    key: content => keyOfHex(algorithm, hexOf(asBuffer(content)))
  }
}

function sha256Of(content: Buffer): string {
  return createHash('sha256').update(content).digest('hex')
}

/** BLAKE3 by one given implementation; exported for tests that compare them. */
export function blake3By(implementation: 'native' | 'wasm'): Derivation | undefined {
  // One call for the whole, in both: making a hasher costs more than hashing what is kept inline.
  if (implementation === 'wasm') {
    const wasm = require('blake3-wasm') as typeof Wasm
    return derivation(
      'blake3',
      () => wasmBlake3(wasm),
      content => (wasm.hash(content) as Buffer).toString('hex')
    )
  }
  if (native === undefined) return undefined
  const from = native
  return derivation('blake3', () => nativeBlake3(from), hexByShared(from))
}

const DERIVATIONS: Record<Algorithm, () => Derivation> = {
  blake3: () => blake3By('native') ?? (blake3By('wasm') as Derivation),
  sha256: () => derivation('sha256', () => createHash('sha256'), sha256Of)
}

/** The derivation of that name, by the fastest implementation here. */
export function derivationOf(algorithm: Algorithm): Derivation {
  return DERIVATIONS[algorithm]()
}
