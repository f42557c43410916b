/** A producer is pulled one chunk at a time, told exactly once that no more is wanted, and its own failure is the put's (O45, O52). */
import { Readable } from 'node:stream'
import { describe, expect, it } from 'vitest'
import type { PutOptions } from '../src/index.js'
import { bytes, NOTHING, opened, rejection, THRESHOLD, turn } from './opened.js'

/** What a producer has seen of its consumer. */
interface Seen {
  pulls: number
  ends: number
}

interface Watched {
  readonly source: AsyncIterable<Uint8Array>
  readonly seen: Seen
}

type Chunks = (pull: number) => Uint8Array | undefined | Promise<Uint8Array | undefined>

const KINDS: Record<string, (chunks: Chunks) => Watched> = {
  'an async generator': chunks => {
    const seen = { pulls: 0, ends: 0 }
    const source = (async function* () {
      try {
        for (;;) {
          const chunk = await chunks(seen.pulls++)
          if (chunk === undefined) return
          yield chunk
        }
      } finally {
        seen.ends++
      }
    })()
    return { source, seen }
  },
  'an async iterator': chunks => {
    const seen = { pulls: 0, ends: 0 }
    const source = {
      [Symbol.asyncIterator]: () => ({
        next: async () => {
          const value = await chunks(seen.pulls++)
          if (value === undefined) seen.ends++
          return value === undefined ? { done: true as const, value } : { done: false as const, value }
        },
        return: async () => {
          seen.ends++
          return { done: true as const, value: undefined }
        }
      })
    }
    return { source, seen }
  },
  'a web stream': chunks => {
    const seen = { pulls: 0, ends: 0 }
    const source = new ReadableStream<Uint8Array>(
      {
        async pull(controller) {
          const chunk = await chunks(seen.pulls++)
          if (chunk !== undefined) return controller.enqueue(chunk)
          seen.ends++
          controller.close()
        },
        cancel() {
          seen.ends++
        }
      },
      { highWaterMark: 0 }
    )
    return { source, seen }
  },
  'a Readable': chunks => {
    const seen = { pulls: 0, ends: 0 }
    const source = new Readable({
      highWaterMark: 0,
      objectMode: true,
      read() {
        Promise.resolve(chunks(seen.pulls++)).then(
          chunk => this.push(chunk ?? null),
          error => this.destroy(error)
        )
      },
      destroy(error, done) {
        seen.ends++
        done(error)
      }
    })
    return { source, seen }
  }
}

const endless: Chunks = () => bytes(10)

describe.each(Object.entries(KINDS))('%s', (kind, watch) => {
  it('is pulled to its end once', async () => {
    const { store } = await opened()
    const { source, seen } = watch(pull => (pull < 5 ? bytes(10) : undefined))
    expect((await store.put(source)).length).toBe(50)
    await turn()
    expect(seen).toEqual({ pulls: 6, ends: 1 })
  })

  it('is not pulled at all under a signal that has fired, and is told', async () => {
    const { store, engine } = await opened()
    const { source, seen } = watch(endless)
    const reason = new Error('mine')
    expect(await rejection(store.put(source, { signal: AbortSignal.abort(reason) }))).toBe(reason)
    await turn()
    expect(seen.pulls).toBe(0)
    // A generator that was never started has no `finally` to run.
    expect(seen.ends).toBe(kind === 'an async generator' ? 0 : 1)
    expect(engine.count('meta.compareAndSet')).toBe(0)
  })

  it.each<[string, PutOptions, string]>([
    ['longer than declared', { length: 25 }, 'ERR_BLOB_LENGTH_MISMATCH'],
    ['longer than the put accepts', { maxLength: 25 }, 'ERR_BLOB_TOO_LARGE'],
    ['longer than the put accepts, by its own word', { maxLength: 25, length: 26 }, 'ERR_BLOB_TOO_LARGE']
  ])('is told once when its content is %s', async (_, options, code) => {
    const { store, engine } = await opened()
    const { source, seen } = watch(endless)
    expect(await rejection(store.put(source, options))).toMatchObject({ code })
    await turn()
    const reads = options.length === 26 ? 0 : 3
    // A Readable pulls once ahead of its consumer.
    expect(seen.pulls).toBeLessThanOrEqual(reads + (kind === 'a Readable' && reads > 0 ? 1 : 0))
    expect(seen.ends).toBe(reads === 0 && kind === 'an async generator' ? 0 : 1)
    expect(engine.residue).toEqual(NOTHING)
  })

  it('that has ended by itself is told nothing when the put fails afterwards', async () => {
    const { store, engine } = await opened()
    for (const fail of ['length', 'publish']) {
      const { source, seen } = watch(pull => (pull < 3 ? bytes(10) : undefined))
      if (fail === 'publish') engine.failBefore('publish')
      await rejection(store.put(source, fail === 'length' ? { length: 31 } : {}))
      await turn()
      expect(seen, fail).toEqual({ pulls: 4, ends: 1 })
      expect(engine.residue).toEqual(NOTHING)
    }
  })

  it('is told once when the signal fires while it is pulled', async () => {
    const { store, engine } = await opened()
    const abort = new AbortController()
    const { source, seen } = watch(pull => {
      if (pull === 4) abort.abort(new Error('mine'))
      return bytes(10)
    })
    expect(await rejection(store.put(source, { signal: abort.signal }))).toMatchObject({ message: 'mine' })
    await turn()
    expect(seen.ends).toBe(1)
    expect(engine.residue).toEqual(NOTHING)
  })

  it('is given up at once when the signal fires while it hangs', async () => {
    const { store, engine } = await opened()
    const abort = new AbortController()
    const { source } = watch(pull => {
      if (pull < 3) return bytes(10)
      setImmediate(() => abort.abort(new Error('mine')))
      return new Promise(() => {})
    })
    expect(await rejection(store.put(source, { signal: abort.signal }))).toMatchObject({ message: 'mine' })
    expect(engine.residue).toEqual(NOTHING)
  })

  it('is given up when the store closes while it hangs', async () => {
    const { store, engine } = await opened()
    let hangs = () => {}
    const hanging = new Promise<void>(resolve => {
      hangs = resolve
    })
    const { source } = watch(pull => {
      if (pull < 3) return bytes(10)
      hangs()
      return new Promise(() => {})
    })
    const put = rejection(store.put(source))
    await hanging
    await store.close()
    expect(await put).toMatchObject({ code: 'ERR_BLOB_STORE_CLOSED' })
    expect(engine.residue).toEqual(NOTHING)
  })

  it.each(['stage', 'create', 'staged', 'write'])('is told once when the engine fails at %s', async step => {
    const { store, engine } = await opened()
    const cause = new Error('medium')
    engine.failBefore(step, cause)
    const { source, seen } = watch(pull => (pull < 300_000 ? bytes(1_000_000) : undefined))
    expect(await rejection(store.put(source))).toMatchObject({ code: 'ERR_BLOB_ENGINE', cause })
    await turn()
    expect(seen.ends).toBe(1)
    expect({ ...engine.residue, stages: 0 }).toEqual(NOTHING)
    expect(engine.stages.size).toBe(0)
  })

  it.each(['meta.compareAndSet', 'claim'])('is told when the pool cannot be made (%s)', async step => {
    const { store, engine } = await opened()
    engine.failBefore(step)
    const { source, seen } = watch(endless)
    expect(await rejection(store.put(source))).toMatchObject({ code: 'ERR_BLOB_ENGINE' })
    await turn()
    expect(seen).toEqual({ pulls: 0, ends: kind === 'an async generator' ? 0 : 1 })
  })

  it('is told when too many are being put', async () => {
    const { store } = await opened({ putsMax: 1 })
    const first = store.put(watch(() => new Promise(() => {})).source)
    const { source, seen } = watch(endless)
    expect(await rejection(store.put(source))).toMatchObject({ code: 'ERR_BLOB_TOO_MANY_PUTS' })
    await turn()
    expect(seen).toEqual({ pulls: 0, ends: kind === 'an async generator' ? 0 : 1 })
    await store.close()
    await rejection(first)
  })

  it.each([0, 1, THRESHOLD - 1, THRESHOLD, THRESHOLD + 1, 10 * THRESHOLD])(
    'that fails after %i bytes fails the put with its own error, and nothing of it stays',
    async length => {
      const { store, engine } = await opened()
      const cause = new Error('the producer')
      const { source } = watch(pull => {
        if (pull === 0 && length > 0) return bytes(length)
        throw cause
      })
      expect(await rejection(store.put(source))).toBe(cause)
      await turn()
      expect(engine.residue).toEqual(NOTHING)
    }
  )

  it('feels backpressure: it is not pulled while the medium writes', async () => {
    const { store, engine } = await opened({ operationTimeoutMs: 30_000 })
    const megabyte = 1024 * 1024
    const { source, seen } = watch(pull => (pull < 20 ? bytes(megabyte) : undefined))
    const gate = engine.gate('write')
    const put = store.put(source)
    await gate.reached
    for (let i = 0; i < 10; i++) await turn()
    // One window is being written, one is filled, one chunk waits for room, and a Readable has one more at hand.
    expect(seen.pulls).toBeLessThanOrEqual(5)
    gate.open()
    expect((await put).length).toBe(20 * megabyte)
  })
})

describe('a producer', () => {
  it('that hangs in its own clean-up is not waited for without end', async () => {
    const { store } = await opened()
    const source = {
      [Symbol.asyncIterator]: () => ({
        next: async () => ({ done: false as const, value: bytes(100) }),
        return: () => new Promise<never>(() => {})
      })
    }
    expect(await rejection(store.put(source, { maxLength: 10 }))).toMatchObject({ code: 'ERR_BLOB_TOO_LARGE' })
  })

  it('that fails in its own clean-up leaves the put its own cause', async () => {
    const { store } = await opened()
    for (const end of [
      () => {
        throw new Error('clean-up')
      },
      () => Promise.reject(new Error('clean-up'))
    ]) {
      const source = {
        [Symbol.asyncIterator]: () => ({ next: async () => ({ done: false as const, value: bytes(100) }), return: end })
      }
      expect(await rejection(store.put(source, { maxLength: 10 }))).toMatchObject({ code: 'ERR_BLOB_TOO_LARGE' })
    }
  })

  it.each<[string, unknown]>([
    ['no iterator at all', { [Symbol.asyncIterator]: () => undefined }],
    ['an iterator without next', { [Symbol.asyncIterator]: () => ({}) }],
    ['no method at all', { [Symbol.asyncIterator]: 7 }],
    ['a step that is no object', { [Symbol.asyncIterator]: () => ({ next: async () => undefined }) }]
  ])('that answers %s is refused with a code', async (_, source) => {
    const { store, engine } = await opened()
    expect(await rejection(store.put(source as AsyncIterable<Uint8Array>))).toMatchObject({
      code: 'ERR_BLOB_INVALID_CONTENT'
    })
    expect(engine.residue).toEqual(NOTHING)
  })

  it('that is a Readable destroyed without an error fails the put', async () => {
    const { store, engine } = await opened()
    let reads = 0
    const source = new Readable({
      read() {
        if (reads++ === 0) this.push(bytes(40))
        else this.destroy()
      }
    })
    await rejection(store.put(source))
    expect(engine.residue).toEqual(NOTHING)
  })

  it('whose progress callback throws fails the put with that error, and is told', async () => {
    const { store, engine } = await opened()
    for (const length of [THRESHOLD, THRESHOLD + 1]) {
      const { source, seen } = (KINDS['a web stream'] as (chunks: Chunks) => Watched)(() => bytes(length))
      const cause = new Error('callback')
      const onProgress = () => {
        throw cause
      }
      expect(await rejection(store.put(source, { onProgress }))).toBe(cause)
      expect(seen.ends).toBe(1)
      expect(engine.residue).toEqual(NOTHING)
    }
  })
})

describe('an abort after the last chunk', () => {
  it.each(['staged', 'seal', 'publish'])('at %s ends as a whole commit or without a trace', async step => {
    const { store, engine } = await opened()
    const abort = new AbortController()
    engine.next(step, effect => {
      abort.abort(new Error('mine'))
      return effect()
    })
    const put = store.put(
      (KINDS['a web stream'] as (chunks: Chunks) => Watched)(pull => (pull < 3 ? bytes(40) : undefined)).source,
      {
        signal: abort.signal
      }
    )
    const outcome = await put.then(
      () => 'committed',
      () => 'rejected'
    )
    expect(engine.residue).toEqual(outcome === 'committed' ? { ...NOTHING, entries: 1, bodies: 1 } : NOTHING)
  })
})
