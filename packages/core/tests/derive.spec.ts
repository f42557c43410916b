import { createHash } from 'node:crypto'
import { describe, expect, it } from 'vitest'
import { blake3By, type Derivation, derivationOf } from '../src/derive.js'

/** First 32 bytes of the `hash` outputs of the official BLAKE3 test vectors, by input length. */
const OFFICIAL: Record<number, string> = {
  0: 'af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262',
  1: '2d3adedff11b61f14c886e35afa036736dcd87a74d27b5c1510225d0f592e213',
  1023: '10108970eeda3eb932baac1428c7a2163b0e924c9a9e25b35bba72b28f70bd11',
  1024: '42214739f095a406f3fc83deb889744ac00df831c10daa55189b5d121c855af7',
  1025: 'd00278ae47eb27b34faecf67b4fe263f82d5412916c1ffd97c8cb7fb814b8444',
  2048: 'e776b6028c7cd22a4d0ba182a8bf62205d2ef576467e838ed6f2529b85fba24a',
  2049: '5f4d72f40d7a5f82b15ca2b2e44b1de3c2ef86c426c95c1af0b6879522563030',
  3072: 'b98cb0ff3623be03326b373de6b9095218513e64f1ee2edd2525c7ad1e5cffd2',
  3073: '7124b49501012f81cc7f11ca069ec9226cecb8a2c850cfe644e327d22d3e1cd3',
  4096: '015094013f57a5277b59d8475c0501042c0b642e531b0a1c8f58d2163229e969',
  4097: '9b4052b38f1c5fc8b1f9ff7ac7b27cd242487b3d890d15c96a1c25b8aa0fb995',
  5120: '9cadc15fed8b5d854562b26a9536d9707cadeda9b143978f319ab34230535833',
  5121: '628bd2cb2004694adaab7bbd778a25df25c47b9d4155a55f8fbd79f2fe154cff',
  6144: '3e2e5b74e048f3add6d21faab3f83aa44d3b2278afb83b80b3c35164ebeca205',
  6145: 'f1323a8631446cc50536a9f705ee5cb619424d46887f3c376c695b70e0f0507f',
  7168: '61da957ec2499a95d6b8023e2b0e604ec7f6b50e80a9678b89d2628e99ada77a',
  7169: 'a003fc7a51754a9b3c7fae0367ab3d782dccf28855a03d435f8cfe74605e7817',
  8192: 'aae792484c8efe4f19e2ca7d371d8c467ffb10748d8a5a1ae579948f718a2a63',
  8193: 'bab6c09cb8ce8cf459261398d2e7aef35700bf488116ceb94a36d0f5f1b7bc3b',
  16384: 'f875d6646de28985646f34ee13be9a576fd515f76b5b0a26bb324735041ddde4',
  31744: '62b6960e1a44bcc1eb1a611a8d6235b6b4b78f32e7abc4fb4c6cdcce94895c47',
  102400: 'bc3e3d41a1146b069abffad3c0d44860cf664390afce4d9661f7902e7943e085'
}

/** Block, BLAKE3 chunk, two chunks, the native threshold, and sizes that end inside none of them. */
const CHUNKINGS = [1, 7, 63, 64, 65, 1023, 1024, 1025, 1536, 4096, 65_536]

const pattern = (length: number) => Buffer.from(Uint8Array.from({ length }, (_, i) => i % 251))

const implementations = Object.entries({ native: blake3By('native'), wasm: blake3By('wasm') }).flatMap(
  ([name, derivation]): [string, Derivation][] => (derivation === undefined ? [] : [[name, derivation]])
)

function inChunks(derivation: Derivation, content: Uint8Array, size: number): string {
  const hasher = derivation.hasher()
  for (let i = 0; i < content.length; i += size) hasher.update(content.subarray(i, i + size))
  return hasher.key()
}

describe.each(implementations)('BLAKE3 by %s', (_, derivation) => {
  it.each(Object.entries(OFFICIAL))(
    'gives the official digest of %s bytes, whole and in every chunking',
    (length, digest) => {
      const content = pattern(Number(length))
      expect(derivation.key(content)).toBe(`blake3:${digest}`)
      const sizes = content.length > 10_000 ? CHUNKINGS.filter(size => size > 1) : CHUNKINGS
      for (const size of sizes)
        expect(inChunks(derivation, content, size), `chunks of ${size}`).toBe(`blake3:${digest}`)
    }
  )

  it('takes one update of more than a mebibyte', () => {
    // Another release of a wasm package gives a wrong digest here while passing every official vector.
    const content = pattern(5 * 1024 * 1024 + 3)
    expect(inChunks(derivation, content, content.length)).toBe(inChunks(derivation, content, 1024))
  })

  it('keeps interleaved hashers apart', () => {
    const contents = [pattern(5000), pattern(4999), Buffer.alloc(5000, 0xff)]
    const hashers = contents.map(() => derivation.hasher())
    for (let i = 0; i < 5000; i += 333) {
      for (const [n, hasher] of hashers.entries()) hasher.update((contents[n] as Buffer).subarray(i, i + 333))
    }
    expect(hashers.map(hasher => hasher.key())).toEqual(contents.map(content => derivation.key(content)))
  })

  it('reads exactly the bytes of an unaligned view', () => {
    const slab = pattern(4096)
    for (let offset = 1; offset <= 8; offset++) {
      const view = new Uint8Array(slab.buffer, slab.byteOffset + offset, 2000)
      expect(derivation.key(view)).toBe(derivation.key(Uint8Array.from(view)))
    }
  })

  it('has read the chunk when update returns', () => {
    const chunk = pattern(3000)
    const hasher = derivation.hasher()
    hasher.update(chunk)
    chunk.fill(0)
    expect(hasher.key()).toBe(derivation.key(pattern(3000)))
  })
})

describe('derivations', () => {
  it('has a native BLAKE3 on the platforms this is tested on', () => {
    expect(implementations.map(([name]) => name)).toEqual(['native', 'wasm'])
  })

  it('agrees between native and WebAssembly at every length up to three chunks', () => {
    const [native, wasm] = [blake3By('native') as Derivation, blake3By('wasm') as Derivation]
    const content = pattern(3 * 1024 + 1)
    for (let length = 0; length <= content.length; length++) {
      const part = content.subarray(0, length)
      expect(native.key(part), `${length} bytes`).toBe(wasm.key(part))
    }
  })

  it('derives SHA-256 as node:crypto does, whole and in chunks', () => {
    const sha256 = derivationOf('sha256')
    for (const length of [0, 1, 63, 64, 65, 100_000]) {
      const content = pattern(length)
      const digest = createHash('sha256').update(content).digest('hex')
      expect(sha256.key(content)).toBe(`sha256:${digest}`)
      expect(inChunks(sha256, content, 63)).toBe(`sha256:${digest}`)
    }
  })
})
