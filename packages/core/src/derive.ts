/**
 * Derivation: content -> key. The only place that knows a hash library.
 *
 * BLAKE3 comes from a native package where one is installed and proves itself on a known input, else from WebAssembly;
 * both give the same digest. Which one runs for which length follows the measurements cited in ADR-002.
 */
import { createHash } from 'node:crypto'
import { createRequire } from 'node:module'
import { createHash as createWasmHasher, hash as wasmHash } from 'blake3-wasm'
import { type Algorithm, type BlobKey, formatKey } from './key.js'

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

/** Below this many bytes calling into WebAssembly costs less than calling into native code. */
const NATIVE_LENGTH_MIN = 1_536

/** The first test vector of the BLAKE3 paper that is longer than a block: 1024 bytes of the repeating pattern 0…250. */
const PROOF_INPUT = Buffer.from(Array.from({ length: 1024 }, (_, i) => i % 251))
const PROOF_DIGEST = '42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7'

interface NativeBlake {
  blake3(content: Buffer): Buffer
  Blake3Hasher: new () => { update(chunk: Buffer): unknown; digestBuffer(): Buffer }
}

const native = loadNative()

function loadNative(): NativeBlake | undefined {
  try {
    const candidate = createRequire(import.meta.url)('@napi-rs/blake-hash') as NativeBlake
    const hasher = new candidate.Blake3Hasher()
    hasher.update(PROOF_INPUT)
    const digests = [hasher.digestBuffer(), candidate.blake3(PROOF_INPUT)]
    return digests.every(digest => digest.toString('hex') === PROOF_DIGEST) ? candidate : undefined
  } catch {
    // An optional dependency: a platform without a prebuilt binary works all the same, more slowly.
    return undefined
  }
}

function nativeBlake3(from: NativeBlake): Digester {
  const hasher = new from.Blake3Hasher()
  return { update: chunk => hasher.update(chunk), digest: () => hasher.digestBuffer() }
}

function wasmBlake3(): Digester {
  const hasher = createWasmHasher()
  return { update: chunk => hasher.update(chunk), digest: () => hasher.digest() }
}

function wasmWhole(content: Buffer): Uint8Array {
  return wasmHash(content) as Buffer
}

/** The same bytes as a Buffer, not a copy: what the hash libraries take. */
function asBuffer(chunk: Uint8Array): Buffer {
  return Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength)
}

function derivation(
  algorithm: Algorithm,
  digester: () => Digester,
  whole: (content: Buffer) => Uint8Array
): Derivation {
  return {
    algorithm,
    hasher: () => {
      const inner = digester()
      return {
        update: chunk => void inner.update(asBuffer(chunk)),
        key: () => formatKey(algorithm, inner.digest())
      }
    },
    key: content => formatKey(algorithm, whole(asBuffer(content)))
  }
}

function sha256Of(content: Buffer): Uint8Array {
  return createHash('sha256').update(content).digest()
}

/** BLAKE3 by one given implementation; exported for tests that compare them. */
export function blake3By(implementation: 'native' | 'wasm'): Derivation | undefined {
  if (implementation === 'wasm') return derivation('blake3', wasmBlake3, wasmWhole)
  if (native === undefined) return undefined
  const from = native
  // One call for the whole: making a hasher costs more than hashing what is kept inline.
  const whole = (content: Buffer) => (content.length < NATIVE_LENGTH_MIN ? wasmWhole(content) : from.blake3(content))
  return derivation('blake3', () => nativeBlake3(from), whole)
}

const DERIVATIONS: Record<Algorithm, () => Derivation> = {
  blake3: () => blake3By('native') ?? (blake3By('wasm') as Derivation),
  sha256: () => derivation('sha256', () => createHash('sha256'), sha256Of)
}

/** The derivation of that name, by the fastest implementation here. */
export function derivationOf(algorithm: Algorithm): Derivation {
  return DERIVATIONS[algorithm]()
}
