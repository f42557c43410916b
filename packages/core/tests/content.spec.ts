import { PassThrough, Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import { blake3By } from '../src/derive.js'
import { InvalidContentError } from '../src/index.js'
import { bytes, NOTHING, opened, rejection, THRESHOLD } from './opened.js'

const keyOf = (content: Uint8Array) => blake3By('wasm')?.key(content)

interface Resizable extends ArrayBuffer {
  resize(length: number): void
}

/** Newer than the types this repository compiles against. */
function resizable(length: number, maxByteLength: number): Resizable {
  const Make = ArrayBuffer as unknown as new (length: number, options: { maxByteLength: number }) => Resizable
  return new Make(length, { maxByteLength })
}

/** One content in every form that `put` takes. */
function formsOf(content: Uint8Array<ArrayBuffer>): Record<string, () => unknown> {
  const half = content.length >> 1
  const parts = () => [content.slice(0, half), new Uint8Array(0), content.slice(half)]
  const shared = () => {
    const buffer = new SharedArrayBuffer(content.length)
    new Uint8Array(buffer).set(content)
    return buffer
  }
  const padded = () => {
    const buffer = new ArrayBuffer(content.length + 24)
    new Uint8Array(buffer).fill(0xee).set(content, 8)
    return buffer
  }
  return {
    Uint8Array: () => content,
    Buffer: () => Buffer.from(content),
    'a pooled Buffer': () => Buffer.concat([content]),
    'a view inside a buffer': () => new Uint8Array(padded(), 8, content.length),
    DataView: () => new DataView(padded(), 8, content.length),
    Int8Array: () => new Int8Array(content.buffer.slice(0)),
    Uint8ClampedArray: () => new Uint8ClampedArray(content.buffer.slice(0)),
    ArrayBuffer: () => content.buffer.slice(0),
    SharedArrayBuffer: shared,
    'a view of a SharedArrayBuffer': () => new Uint8Array(shared()),
    'a resizable ArrayBuffer': () => {
      const buffer = resizable(content.length, content.length + 100)
      new Uint8Array(buffer).set(content)
      return buffer
    },
    Blob: () => new Blob(parts()),
    File: () => new File(parts(), 'name'),
    'a web stream': () => webStream(parts()),
    'a web byte stream': () => new Blob([content]).stream(),
    'a Readable': () => Readable.from(parts()),
    'a PassThrough': () => {
      const stream = new PassThrough()
      for (const part of parts()) stream.write(part)
      return stream.end()
    },
    'an async generator': async function* () {
      yield* parts()
    },
    'an async iterable without return': () => ({
      [Symbol.asyncIterator]: () => {
        const rest = parts()
        return { next: async () => ({ done: rest.length === 0, value: rest.shift() }) }
      }
    })
  }
}

function webStream(chunks: readonly unknown[], told: { cancels: unknown[] } = { cancels: [] }): ReadableStream {
  const rest = [...chunks]
  return new ReadableStream(
    {
      pull(controller) {
        if (rest.length === 0) controller.close()
        else controller.enqueue(rest.shift())
      },
      cancel(reason) {
        told.cancels.push(reason)
      }
    },
    { highWaterMark: 0 }
  )
}

describe.each([0, 1, THRESHOLD, THRESHOLD + 1, 70_000])('content of %i bytes', length => {
  const content = bytes(length)

  it.each(Object.entries(formsOf(content)))('is the same blob as %s', async (_, form) => {
    const { store, engine } = await opened()
    const value = form()
    const receipt = await store.put((typeof value === 'function' ? value() : value) as Uint8Array)
    expect(receipt).toMatchObject({ key: keyOf(content), length, created: true })
    const blob = await store.get(receipt.key)
    expect(await blob?.bytes()).toEqual(content)
    expect(engine.residue).toEqual({ ...NOTHING, entries: 1, bodies: length > THRESHOLD ? 1 : 0 })
  })
})

describe('views', () => {
  it('of wider elements are the bytes they cover', async () => {
    const { store } = await opened()
    for (const view of [new Uint16Array([1, 2]), new Float64Array([0.5, -1]), new BigInt64Array([1n, -1n])]) {
      const { key, length } = await store.put(view)
      expect(length).toBe(view.byteLength)
      expect(key).toBe(keyOf(new Uint8Array(view.buffer)))
    }
  })

  it('at any offset of a pooled slab are exactly their bytes', async () => {
    const { store } = await opened()
    const slab = Buffer.from(bytes(4_096))
    for (let offset = 1; offset <= 8; offset++) {
      for (const length of [5, 100]) {
        const view = slab.subarray(offset, offset + length)
        const { key } = await store.put(view)
        expect(key).toBe(keyOf(Uint8Array.from(view)))
        expect(await (await store.get(key))?.bytes()).toEqual(Uint8Array.from(view))
      }
    }
    const pooled = Buffer.from('x')
    expect((await store.put(pooled)).key).toBe(keyOf(new TextEncoder().encode('x')))
  })

  it('of a string are its UTF-8 bytes', async () => {
    const { store } = await opened()
    for (const text of ['', 'plain', 'grüße 🌍', '\ud800', '\0']) {
      expect((await store.put(text)).key, text).toBe(keyOf(new TextEncoder().encode(text)))
    }
  })
})

describe('memory that is not there', () => {
  const detached = () => {
    const view = bytes(100)
    structuredClone(view.buffer, { transfer: [view.buffer] })
    return view
  }
  const cut = () => {
    const buffer = resizable(64, 64)
    const view = new Uint8Array(buffer, 32, 8)
    const data = new DataView(buffer, 32, 8)
    buffer.resize(16)
    return { view, data }
  }

  it.each([
    ['a detached view', detached],
    ['a detached buffer', () => detached().buffer],
    ['a view past the end of its shrunken buffer', () => cut().view],
    ['a DataView past the end of its shrunken buffer', () => cut().data]
  ])('is refused: %s', async (_, make) => {
    const { store, engine } = await opened()
    expect(await rejection(store.put(make()))).toBeInstanceOf(InvalidContentError)
    expect(engine.residue).toEqual(NOTHING)
  })

  it.each([
    ['detached', detached],
    ['out of bounds', () => cut().view]
  ])('is refused as a chunk that is %s', async (_, make) => {
    const { store, engine } = await opened()
    const source = async function* () {
      yield bytes(50)
      yield make()
    }
    expect(await rejection(store.put(source()))).toBeInstanceOf(InvalidContentError)
    expect(engine.residue).toEqual(NOTHING)
  })

  it('transferred away while a large put is under way fails it with a code', async () => {
    const { store, engine } = await opened()
    const content = bytes(5_000)
    const put = store.put(content)
    structuredClone(content.buffer, { transfer: [content.buffer] })
    expect(await rejection(put)).toBeInstanceOf(InvalidContentError)
    expect(engine.residue).toEqual(NOTHING)
  })
})

describe("the caller's buffer", () => {
  it.each([10, THRESHOLD, 1_000, 3_000_000])(
    'of %i bytes may be changed at once: the stored bytes have the key',
    async length => {
      for (const wait of [async () => {}, () => Promise.resolve(), () => new Promise(setImmediate)]) {
        const { store } = await opened()
        const content = bytes(length)
        const put = store.put(content)
        await wait()
        content.fill(0xff)
        const { key } = await put
        const stored = await (await store.get(key, { verify: false }))?.bytes()
        expect(keyOf(stored as Uint8Array)).toBe(key)
        if (length <= THRESHOLD) expect(stored).toEqual(bytes(length))
      }
    }
  )

  it('may be one that the producer fills anew for each chunk', async () => {
    const { store } = await opened()
    const whole = bytes(10_000)
    const source = async function* () {
      const chunk = new Uint8Array(100)
      for (let at = 0; at < whole.length; at += 100) {
        chunk.set(whole.subarray(at, at + 100))
        yield chunk
      }
    }
    expect((await store.put(source())).key).toBe(keyOf(whole))
  })

  it("and the bytes a blob gave out are not the pool's", async () => {
    const { store } = await opened()
    for (const length of [10, 1_000]) {
      const { key } = await store.put(bytes(length))
      const first = await (await store.get(key))?.bytes()
      first?.fill(0)
      for await (const chunk of (await store.get(key)) ?? []) chunk.fill(0)
      expect(await (await store.get(key))?.bytes()).toEqual(bytes(length))
    }
  })
})

describe('what is no content', () => {
  it.each<[string, unknown]>([
    ['undefined', undefined],
    ['null', null],
    ['a number', 1],
    ['NaN', Number.NaN],
    ['a bigint', 1n],
    ['a symbol', Symbol('x')],
    ['a function', () => {}],
    ['an object', {}],
    ['an object without prototype', Object.create(null)],
    ['an array of numbers', [1, 2]],
    ['an array of bytes', [bytes(1)]],
    ['a sync generator', (function* () {})()],
    ['a Map', new Map()],
    ['a promise of bytes', Promise.resolve(bytes(1))],
    ['a Date', new Date()],
    ['a WritableStream', new WritableStream()],
    ['a class whose name is a symbol', Object.create({ constructor: { name: Symbol('secret') } })]
  ])('is refused: %s', async (_, value) => {
    const { store, engine } = await opened()
    const error = await rejection(store.put(value as Uint8Array))
    expect(error).toMatchObject({ code: 'ERR_BLOB_INVALID_CONTENT' })
    expect(error.message).not.toContain('secret')
    expect(engine.steps.filter(step => step !== 'meta.read' && step !== 'claimed')).toEqual([])
  })

  it.each<[string, unknown, RegExp]>([
    ['a string', 'text', /a string/],
    ['a number', 7, /a number/],
    ['null', null, /null/],
    ['undefined', undefined, /undefined/],
    ['an array', [1, 2], /Array/],
    ['an object', { a: 1 }, /Object/],
    ['an ArrayBuffer', new ArrayBuffer(3), /ArrayBuffer/],
    ['a Uint16Array', new Uint16Array(3), /Uint16Array/],
    ['a DataView', new DataView(new ArrayBuffer(3)), /DataView/]
  ])('is refused as a chunk, at every place of a stream, and named: %s', async (_, chunk, named) => {
    for (const before of [[], [bytes(3)], [bytes(THRESHOLD + 1)]]) {
      for (const source of [webStream([...before, chunk]), generatorOf([...before, chunk])]) {
        const { store, engine } = await opened()
        const error = await rejection(store.put(source as ReadableStream))
        expect(error).toMatchObject({ code: 'ERR_BLOB_INVALID_CONTENT', message: expect.stringMatching(named) })
        expect(engine.residue).toEqual(NOTHING)
      }
    }
  })

  it('is text that a Readable was told to decode', async () => {
    const { store, engine } = await opened()
    const source = Readable.from([Buffer.from([0xff, 0xfe])], { objectMode: false }).setEncoding('utf8')
    expect(await rejection(store.put(source))).toMatchObject({ code: 'ERR_BLOB_INVALID_CONTENT' })
    expect(source.destroyed).toBe(true)
    expect(engine.residue).toEqual(NOTHING)
  })
})

async function* generatorOf(chunks: readonly unknown[]): AsyncGenerator {
  yield* chunks
}

describe('streams that were used before', () => {
  it.each<[string, () => unknown]>([
    ['a locked web stream', () => locked(webStream([bytes(3)]))],
    ['a web stream read to its end', () => drained(webStream([bytes(3)]))],
    ['a Readable read to its end', () => drained(Readable.from([bytes(3)]))],
    ['a destroyed Readable', () => Readable.from([bytes(3)]).destroy()],
    ['a failed Readable', () => failed(new Readable({ read() {} }))]
  ])('are refused: %s', async (_, make) => {
    const { store, engine } = await opened()
    expect(await rejection(store.put((await make()) as Readable))).toMatchObject({ code: 'ERR_BLOB_INVALID_CONTENT' })
    expect(engine.residue).toEqual(NOTHING)
  })

  const locked = (stream: ReadableStream) => {
    stream.getReader()
    return stream
  }
  const drained = async (stream: ReadableStream | Readable) => {
    if (stream instanceof Readable) for await (const _ of stream);
    else {
      const reader = stream.getReader()
      while (!(await reader.read()).done);
      reader.releaseLock()
    }
    return stream
  }
  const failed = async (stream: Readable) => {
    const closed = new Promise(resolve => stream.once('error', () => {}).once('close', resolve))
    stream.destroy(new Error('before'))
    await closed
    return stream
  }
})
