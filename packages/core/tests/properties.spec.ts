/** Properties of core: derivation and keys, ranges, stream adapters, sets of keys, dispatch. A failure prints its seed and path. */
import { createHash } from 'node:crypto'
import { Readable } from 'node:stream'
import fc from 'fast-check'
import { afterEach, describe, expect, it } from 'vitest'
import { blake3By, type Derivation, derivationOf } from '../src/derive.js'
import { Dispatch } from '../src/dispatch.js'
import { BlobError, InvalidKeyError, openStore, type Store } from '../src/index.js'
import { ALGORITHMS, type BlobKey, digestOf, formatKey, isKey, parseKey, readDigest } from '../src/key.js'
import { clampRange } from '../src/range.js'
import { KeySet } from '../src/sweep/key-set.js'
import { Scripted } from './scripted-engine.js'

/** The threshold of the stores here: small, so that every content meets both tiers. */
const THRESHOLD = 32

/** Lengths that bugs live at: the empty one, the threshold, the hash's block and chunk, and one to either side. */
const interesting = [0, 1, THRESHOLD, 64, 1024, 1536, 2048].flatMap(length => [
  Math.max(length - 1, 0),
  length,
  length + 1
])
const lengths = fc.oneof(fc.constantFrom(...interesting), fc.nat(5_000))

/** Few contents, so that puts often meet the same one. */
const contents = fc.tuple(lengths, fc.nat(3)).map(([length, seed]) => patterned(length, seed))

function patterned(length: number, seed: number): Uint8Array<ArrayBuffer> {
  return Uint8Array.from({ length }, (_, i) => (i * (seed + 1) + seed * 17) % 251)
}

/** A content cut anywhere, with empty chunks among the others. */
const chunked = contents.chain(content =>
  fc.array(fc.nat(content.length), { maxLength: 8 }).map(cuts => {
    const at = [0, ...cuts.sort((a, b) => a - b), content.length]
    return { content, chunks: at.slice(1).map((end, i) => content.slice(at[i], end)) }
  })
)

const open: Store[] = []
afterEach(async () => {
  for (const store of open.splice(0)) await store.close()
})

async function freshStore() {
  const engine = new Scripted()
  engine.readLength = 100
  const store = await openStore({ kv: engine.kv, large: engine.large, threshold: THRESHOLD, trashDelayMs: 0 })
  open.push(store)
  return { store, engine }
}

describe('derivation', () => {
  const [native, wasm] = [blake3By('native') ?? derivationOf('blake3'), blake3By('wasm') as Derivation]

  it.each([...ALGORITHMS])('by %s is the same in any chunking as at once', algorithm => {
    const derivation = derivationOf(algorithm)
    fc.assert(
      fc.property(chunked, ({ content, chunks }) => {
        const hasher = derivation.hasher()
        for (const chunk of chunks) hasher.update(chunk)
        expect(hasher.key()).toBe(derivation.key(content))
      })
    )
  })

  it('is the same native and in WebAssembly, whole and in any chunking of either', () => {
    fc.assert(
      fc.property(chunked, fc.array(fc.boolean(), { minLength: 1, maxLength: 4 }), ({ content, chunks }, order) => {
        const hashers = order.map(isNative => (isNative ? native : wasm).hasher())
        for (const chunk of chunks) for (const hasher of hashers) hasher.update(chunk)
        for (const hasher of hashers) expect(hasher.key()).toBe(native.key(content))
        expect(wasm.key(content)).toBe(native.key(content))
      })
    )
  })

  it('by SHA-256 is that of node:crypto', () => {
    fc.assert(
      fc.property(contents, content => {
        expect(derivationOf('sha256').key(content)).toBe(`sha256:${createHash('sha256').update(content).digest('hex')}`)
      })
    )
  })

  it('tells contents apart that differ in one bit or in their length', () => {
    fc.assert(
      fc.property(contents, fc.nat(), fc.nat(7), (content, at, bit) => {
        const longer = Uint8Array.from([...content, 0])
        expect(native.key(longer)).not.toBe(native.key(content))
        if (content.length === 0) return
        const other = Uint8Array.from(content)
        other[at % content.length] = (other[at % content.length] as number) ^ (1 << bit)
        expect(native.key(other)).not.toBe(native.key(content))
      })
    )
  })
})

describe('keys', () => {
  const digests = fc.uint8Array({ minLength: 32, maxLength: 32 })

  it('format and parse are inverse', () => {
    fc.assert(
      fc.property(fc.constantFrom(...ALGORITHMS), digests, (algorithm, digest) => {
        const key = formatKey(algorithm, digest)
        expect(parseKey(key, algorithm)).toBe(key)
        expect(digestOf(key)).toEqual(Buffer.from(digest))
        const bytes = new Uint8Array(34)
        readDigest(key, algorithm, bytes, 1)
        expect([...bytes]).toEqual([0, ...digest, 0])
      })
    )
  })

  it('are nothing else: whatever is not exactly the written form is refused', () => {
    const written = /^(blake3|sha256):[0-9a-f]{64}$/
    const near = fc
      .tuple(
        fc.constantFrom(...ALGORITHMS),
        digests,
        fc.nat(80),
        fc.string({ unit: 'binary', maxLength: 2 }),
        fc.nat(2)
      )
      .map(([algorithm, digest, at, text, removed]) => {
        const key = formatKey(algorithm, digest)
        return key.slice(0, at) + text + key.slice(at + removed)
      })
    fc.assert(
      fc.property(fc.oneof(near, fc.string({ unit: 'binary' }), fc.anything()), value => {
        const right = typeof value === 'string' && written.test(value) && value.length === 71
        expect(isKey(value)).toBe(right)
        if (!right) expect(() => parseKey(value)).toThrow(InvalidKeyError)
        for (const algorithm of ALGORITHMS) {
          const read = () => readDigest(value, algorithm, new Uint8Array(32), 0)
          if (right && value.startsWith(algorithm)) read()
          else expect(read).toThrow(InvalidKeyError)
        }
      }),
      { numRuns: 500 }
    )
  })
})

describe('ranges', () => {
  const bound = (length: number) =>
    fc.oneof(
      fc.integer({ min: -length - 3, max: length + 3 }),
      fc.constantFrom(
        undefined,
        -0,
        Number.POSITIVE_INFINITY,
        Number.NEGATIVE_INFINITY,
        Number.MAX_SAFE_INTEGER,
        Number.MIN_SAFE_INTEGER,
        2 ** 53
      )
    )

  it('composed any number of times are those of an array', async () => {
    const { store } = await freshStore()
    const whole = await Promise.all(
      interesting.map(async length => {
        const content = patterned(length, 1)
        const { key } = await store.put(content)
        return { content, key }
      })
    )
    await fc.assert(
      fc.asyncProperty(
        fc.constantFrom(...whole).chain(found => {
          const bounds = bound(found.content.length)
          return fc.tuple(fc.constant(found), fc.array(fc.tuple(bounds, bounds), { maxLength: 5 }))
        }),
        async ([{ content, key }, slices]) => {
          let [blob, array] = [await store.get(key), content]
          for (const [start, end] of slices) {
            blob = blob?.slice(start, end)
            array = array.slice(start, end)
          }
          expect(blob?.size).toBe(array.length)
          expect(await blob?.bytes()).toEqual(array)
        }
      )
    )
  })

  it('lie within what they are a part of, and anything that is no whole number is refused', () => {
    fc.assert(
      fc.property(fc.nat(2 ** 40), fc.anything(), fc.anything(), (length, start, end) => {
        const isBound = (value: unknown) =>
          value === undefined ||
          (typeof value === 'number' && (Number.isInteger(value) || Math.abs(value) === Infinity))
        if (isBound(start) && isBound(end)) {
          const range = clampRange(length, start as number, end as number)
          expect(range.start >= 0 && range.start <= range.end && range.end <= length).toBe(true)
        } else {
          const refused = expect.objectContaining({ name: expect.stringMatching(/^(TypeError|RangeError)$/) })
          expect(() => clampRange(length, start as number, end as number)).toThrow(refused)
        }
      }),
      { numRuns: 1_000 }
    )
  })
})

describe('stream adapters', () => {
  type Form = (chunks: readonly unknown[], end: 'close' | Error) => AsyncIterable<Uint8Array>

  const forms: Record<string, Form> = {
    generator: async function* (chunks, end) {
      yield* chunks as Uint8Array[]
      if (end !== 'close') throw end
    },
    web: (chunks, end) => {
      const rest = [...chunks]
      return new ReadableStream({
        pull(controller) {
          if (rest.length > 0) controller.enqueue(rest.shift() as Uint8Array)
          else if (end === 'close') controller.close()
          else controller.error(end)
        }
      })
    },
    readable: (chunks, end) => {
      const rest = [...chunks]
      return new Readable({
        objectMode: true,
        read() {
          if (rest.length > 0) this.push(rest.shift())
          else if (end === 'close') this.push(null)
          else this.destroy(end)
        }
      })
    },
    iterator: (chunks, end) => ({
      [Symbol.asyncIterator]: () => {
        const rest = [...chunks]
        return {
          next: async () => {
            if (rest.length === 0 && end !== 'close') throw end
            return { done: rest.length === 0, value: rest.shift() as Uint8Array } as IteratorResult<Uint8Array>
          }
        }
      }
    })
  }
  const form = fc.constantFrom(...Object.entries(forms))

  it('give the same blob for any source and chunking, with and without its length', async () => {
    await fc.assert(
      fc.asyncProperty(chunked, form, fc.boolean(), async ({ content, chunks }, [, source], isDeclared) => {
        const { store, engine } = await freshStore()
        const options = isDeclared ? { length: content.length } : {}
        const { key, length } = await store.put(source(chunks, 'close'), options)
        expect(key).toBe(derivationOf('blake3').key(content))
        expect(length).toBe(content.length)
        expect(await (await store.get(key))?.bytes()).toEqual(content)
        expect((await store.stat(key))?.tier).toBe(content.length > THRESHOLD ? 'large' : 'kv')
        expect(engine.open).toBe(0)
      })
    )
  })

  it("reject whatever is malformed, with the producer's own error or a code, and clean up", async () => {
    const noBytes = fc.constantFrom<unknown>('text', 7, {}, [1, 2], new Uint16Array(2), new ArrayBuffer(2), true)
    const bad = fc.oneof(
      noBytes.map(chunk => ({ chunk })),
      fc.constant({ end: new Error('the producer') }),
      fc.constant({ by: 1 }),
      fc.constant({ by: -1 })
    )
    await fc.assert(
      fc.asyncProperty(chunked, form, bad, fc.nat(), async ({ content, chunks }, [, source], fault, at) => {
        const { store, engine } = await freshStore()
        const given: unknown[] = [...chunks]
        if ('chunk' in fault) given.splice(at % (given.length + 1), 0, fault.chunk)
        const end = 'end' in fault ? fault.end : 'close'
        const options = 'by' in fault ? { length: Math.abs(content.length + fault.by) } : {}
        const error = await store.put(source(given, end), options).then(
          () => undefined,
          reason => reason
        )
        expect(error instanceof BlobError || error === end).toBe(true)
        expect(engine.residue).toEqual({ entries: 0, stages: 0, halves: 0, bodies: 0, trash: 0, open: 0 })
        expect(store.pins()).toEqual([])
      })
    )
  })

  it('read back the same bytes by every way of reading', async () => {
    await fc.assert(
      fc.asyncProperty(contents, fc.integer({ min: 1, max: 300 }), async (content, readLength) => {
        const { store, engine } = await freshStore()
        engine.readLength = readLength
        const { key } = await store.put(content)
        const blob = await store.get(key)
        const iterated: Uint8Array[] = []
        for await (const chunk of blob ?? []) iterated.push(chunk)
        const streamed = new Uint8Array(await new Response(blob?.stream()).arrayBuffer())
        for (const bytes of [Buffer.concat(iterated), streamed, new Uint8Array((await blob?.arrayBuffer()) ?? [])]) {
          expect(Buffer.compare(bytes, content)).toBe(0)
        }
        expect(await blob?.text()).toBe(new TextDecoder().decode(content))
        expect(engine.open).toBe(0)
      }),
      { numRuns: 50 }
    )
  })
})

describe('a set of keys', () => {
  it('answers as a Set does', () => {
    // Few distinct first bytes and tails, so that slots collide and keys repeat.
    const digest = fc.tuple(fc.constantFrom(0, 1, 1_023, 1_024, 2 ** 32 - 1), fc.nat(400)).map(([head, tail]) => {
      const bytes = Buffer.alloc(32)
      bytes.writeUInt32BE(head, 0)
      bytes.writeUInt32BE(tail, 28)
      return formatKey('blake3', bytes)
    })
    // The hash is all of the first word, or nothing.
    const multipliers = fc.constantFrom(Int32Array.from([1, 1 << 16, ...Array(14).fill(0)]), new Int32Array(16))
    fc.assert(
      fc.property(fc.array(digest, { maxLength: 2_000 }), fc.array(digest), multipliers, (added, asked, chosen) => {
        const [set, model] = [new KeySet('blake3', chosen), new Set<BlobKey>()]
        for (const key of added) {
          set.add(key)
          model.add(key)
        }
        expect(set.size).toBe(model.size)
        for (const key of [...added, ...asked]) expect(set.has(key)).toBe(model.has(key))
      }),
      { numRuns: 40 }
    )
  })

  it('answers as a Set does when there are many, of few first bytes or all, added and asked by turns', () => {
    const drawn = Array.from({ length: 30_000 }, (_, i) => createHash('sha256').update(`${i}`).digest())
    const keys = [
      ...drawn.map(digest => formatKey('blake3', digest)),
      ...drawn.map((digest, i) => formatKey('blake3', digest.fill(i % 3, 0, 1)))
    ]
    const run = fc.record({
      from: fc.nat(keys.length - 1),
      count: fc.oneof(fc.nat(300), fc.nat(20_000)),
      step: fc.constantFrom(1, 7, 7_919),
      asked: fc.boolean()
    })
    const answers = fc.property(fc.array(run, { minLength: 1, maxLength: 12 }), runs => {
      const [set, model] = [new KeySet('blake3'), new Set<BlobKey>()]
      for (const { from, count, step, asked } of [...runs, { from: 0, count: keys.length, step: 1, asked: true }]) {
        for (let i = 0; i < count; i++) {
          const key = keys[(from + i * step) % keys.length] as BlobKey
          if (asked) {
            if (set.has(key) !== model.has(key))
              throw new Error(`${key} is there: ${model.has(key)}, and the set says otherwise`)
          } else {
            set.add(key)
            model.add(key)
          }
        }
        expect(set.capacity).toBeLessThanOrEqual(1.5 * model.size + 256 * 384)
      }
      expect(set.size).toBe(model.size)
    })
    fc.assert(answers, { numRuns: 15 })
  })
})

describe('dispatch', () => {
  it('is a function of the length alone: whatever the form, the order and the re-puts', async () => {
    const put = fc.tuple(contents, fc.constantFrom('bytes', 'stream', 'declared', 'writer'))
    await fc.assert(
      fc.asyncProperty(fc.array(put, { minLength: 1, maxLength: 6 }), async puts => {
        const { store, engine } = await freshStore()
        const model = new Map<string, number>()
        for (const [content, form] of puts) {
          const stream = async function* () {
            yield content
          }
          const receipt =
            form === 'bytes'
              ? await store.put(content)
              : form === 'writer'
                ? await written(store, content)
                : await store.put(stream(), form === 'declared' ? { length: content.length } : {})
          expect(receipt.created).toBe(!model.has(receipt.key))
          model.set(receipt.key, content.length)
        }
        for (const [key, length] of model) {
          expect(await store.stat(key)).toMatchObject({ length, tier: length > THRESHOLD ? 'large' : 'kv' })
        }
        const large = [...model.values()].filter(length => length > THRESHOLD)
        expect(await store.usage()).toMatchObject({
          entries: model.size,
          bytes: [...model.values()].reduce((sum, length) => sum + length, 0),
          perTier: { large: { entries: large.length } },
          stages: 0,
          trash: 0
        })
        expect(engine.bodies.size).toBe(large.length)
      }),
      { numRuns: 60 }
    )
  })

  it('splits the lengths at the threshold, or refuses what no tier takes', () => {
    fc.assert(
      fc.property(fc.nat(), fc.nat(), (threshold, length) => {
        const dual = new Dispatch('dual-tier', threshold)
        expect(dual.tierOf(length)).toBe(length <= threshold ? 'kv' : 'large')
        expect([dual.tierOf(threshold), dual.tierOf(threshold + 1)]).toEqual(['kv', 'large'])
        const single = new Dispatch('kv-only', threshold)
        if (length <= threshold) expect(single.tierOf(length)).toBe('kv')
        else expect(() => single.tierOf(length)).toThrow(expect.objectContaining({ code: 'ERR_BLOB_TOO_LARGE' }))
      })
    )
  })

  async function written(store: Store, content: Uint8Array) {
    const writer = store.writer()
    await writer.write(content.subarray(0, content.length >> 1))
    await writer.write(content.subarray(content.length >> 1))
    return writer.commit()
  }
})
