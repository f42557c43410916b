/** A source that cannot answer must never look like one that says "not referenced" (O03, O04). */
import { describe, expect, it, vi } from 'vitest'
import type { AnsweringSource, EnumeratingSource, LivenessSource } from '../src/index.js'
import { ABSENT, bytes, opened, rejection, turn } from './opened.js'
import { Scripted } from './scripted-engine.js'

/** A store whose entries are all staged and due: a sweep that trusted too much would remove them. */
async function doomed(engine = new Scripted()) {
  const { store } = await opened({ engine })
  const keys: string[] = []
  for (const content of ['a', 'b', 'c', bytes(100)]) {
    const receipt = await store.put(content)
    keys.push(receipt.key)
    await receipt.release()
  }
  const nobody = store.protect({ name: 'nobody', live: () => [] })
  await store.sweep()
  nobody.remove()
  expect(engine.window.size).toBe(4)
  engine.steps.length = 0
  return { store, engine, keys }
}

const EFFECTS = ['stageCandidates', 'remove', 'drop', 'dropped']
const cause = new Error('the database')

/** What a source answers with, besides its name. */
type Question = Omit<EnumeratingSource, 'name'> | Omit<AnsweringSource, 'name'>

const FAILURES: Record<string, (keys: readonly string[]) => Question> = {
  'throws at once': () => ({
    live: () => {
      throw cause
    }
  }),
  'rejects at once': () => ({ live: () => Promise.reject(cause) }),
  'yields half of its keys and then throws': keys => ({
    *live() {
      yield* keys.slice(0, 2)
      throw cause
    }
  }),
  'yields half of its keys and then rejects': keys => ({
    async *live() {
      yield* keys.slice(0, 2)
      throw cause
    }
  }),
  'hangs at once': () => ({ live: () => new Promise<never>(() => {}) }),
  'hangs half way': keys => ({
    async *live() {
      yield* keys.slice(0, 2)
      await new Promise(() => {})
    }
  }),
  'answers undefined': () => ({ live: () => undefined as never }),
  'answers null': () => ({ live: () => null as never }),
  'answers a key instead of a list': keys => ({ live: () => keys[0] as never }),
  'answers a number': () => ({ live: () => 7 as never }),
  'answers an object': () => ({ live: () => ({}) as never }),
  'answers an iterator that is none': () => ({ live: () => ({ [Symbol.asyncIterator]: () => ({}) }) as never }),
  'names what is no key': keys => ({ live: () => [...keys, 'oops'] }),
  'names a key with a capital': keys => ({ live: () => [keys[0]?.toUpperCase() as string] }),
  'names undefined': () => ({ live: () => [undefined as never] }),
  'names a key of another algorithm': keys => ({ live: () => [`sha256:${keys[0]?.slice(7)}`] }),
  'names a key of another algorithm in a stream': keys => ({
    async *live() {
      yield `sha256:${keys[0]?.slice(7)}`
    }
  }),
  'cannot judge': () => ({ isLive: () => Promise.reject(cause) }),
  'hangs in judging': () => ({ isLive: () => new Promise<never>(() => {}) }),
  'judges with what is no list': () => ({ isLive: () => true as never }),
  'judges with what is no key': () => ({ isLive: () => ['oops'] })
}

describe.each(Object.entries(FAILURES))('a source that %s', (_, failure) => {
  const source = (keys: readonly string[]) => ({ name: 'second', timeoutMs: 30, ...failure(keys) }) as LivenessSource

  it('between two that answer ends the sweep before any effect, by name', async () => {
    const { store, engine, keys } = await doomed()
    store.protect({ name: 'first', live: () => [] })
    const second = store.protect(source(keys))
    store.protect({ name: 'third', isLive: () => [] })
    const report = await store.sweep()
    expect(report).toMatchObject({ aborted: 'ProtectFailed', source: 'second' })
    expect(report.cause).toBeInstanceOf(Error)
    expect([report.candidatesStaged, report.deleted, report.bytesDeleted, report.cancelledByArbitration]).toEqual([
      0, 0, 0, 0
    ])
    expect(engine.steps.filter(step => EFFECTS.includes(step))).toEqual([])
    expect(engine.entries.size).toBe(4)
    expect(engine.leased).toBe(false)
    second.remove()
    expect(await store.sweep()).toMatchObject({ deleted: 4 })
  })

  it('keeps what a delete would take, and says so', async () => {
    const { store, engine, keys } = await doomed()
    store.protect(source(keys))
    const error = await rejection(store.delete(keys[3] as string))
    expect(error).toMatchObject({ code: 'ERR_BLOB_GC_REFUSED', reason: 'source-failed' })
    expect(engine.entries.size).toBe(4)
    expect(engine.marks.size).toBe(0)
  })

  it('makes `why` say that nobody knows', async () => {
    const { store, keys } = await doomed()
    store.protect(source(keys))
    expect(await store.why(keys[0] as string)).toMatchObject({ verdict: 'source-failed', liveBy: [] })
  })
})

describe('sources', () => {
  it('are asked for nothing and nothing is done while there are none', async () => {
    const { store, engine } = await doomed()
    for (const _ of [1, 2]) {
      const { durationMs, ...report } = await store.sweep()
      expect(report).toMatchObject({
        aborted: 'NoLivenessSources',
        scanned: 0,
        live: 0,
        candidatesStaged: 0,
        deleted: 0
      })
      expect(durationMs).toBeGreaterThanOrEqual(0)
    }
    expect(engine.steps).toEqual([])
  })

  it('that were removed count as none, and one of another store does not count here', async () => {
    const { store, engine } = await doomed()
    const other = await opened({ engine: new Scripted() })
    other.store.protect({ name: 'elsewhere', live: () => [] })
    const source: LivenessSource = { name: 'app', live: () => [] }
    const [once, twice] = [store.protect(source), store.protect(source)]
    once.remove()
    once.remove()
    expect((await store.sweep()).aborted).toBeUndefined()
    twice.remove()
    expect(await store.sweep()).toMatchObject({ aborted: 'NoLivenessSources' })
    expect(engine.entries.size).toBe(0)
  })

  it('that are empty are an answer', async () => {
    const { store } = await doomed()
    store.protect({ name: 'app', async *live() {} })
    expect(await store.sweep()).toMatchObject({ deleted: 4 })
  })

  it('may name absent keys, and keys twice, sync, async or by promise', async () => {
    for (const live of [
      (keys: string[]) => [...keys, ...keys, ABSENT],
      (keys: string[]) => new Set([...keys, ABSENT]),
      (keys: string[]) => Promise.resolve([...keys, ABSENT]),
      async function* (keys: string[]) {
        yield* [...keys, ...keys, ABSENT]
      }
    ]) {
      const { store, keys } = await doomed()
      store.protect({ name: 'app', live: () => live(keys) })
      expect(await store.sweep()).toMatchObject({ deleted: 0, cancelledByArbitration: 4 })
    }
  })

  it('that judge are asked only for what the others do not protect', async () => {
    const { store, keys } = await doomed()
    const asked: string[][] = []
    store.protect({ name: 'lists', live: () => keys.slice(0, 2) })
    store.protect({
      name: 'judges',
      isLive: some => {
        asked.push([...some])
        return keys.slice(2, 3)
      }
    })
    expect(await store.sweep()).toMatchObject({ deleted: 1, cancelledByArbitration: 3 })
    expect(asked[0]?.sort()).toEqual([...keys.slice(2)].sort())
  })

  it('that are silent for less than their patience at a time may take long in all', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    try {
      const { store, keys } = await doomed()
      store.protect({
        name: 'slow',
        timeoutMs: 1_000,
        async *live() {
          for (const key of keys) {
            await new Promise(resolve => setTimeout(resolve, 900))
            yield key
          }
        }
      })
      const sweep = store.sweep()
      for (let i = 0; i < 40; i++) {
        await turn()
        await vi.advanceTimersByTimeAsync(100)
      }
      expect(await sweep).toMatchObject({ cancelledByArbitration: 4 })
    } finally {
      vi.useRealTimers()
    }
  })

  it('are told when the sweep is cancelled, which is then what the report says', async () => {
    const { store, engine } = await doomed()
    const abort = new AbortController()
    let told: unknown
    store.protect({
      name: 'app',
      live: signal => {
        signal.addEventListener('abort', () => {
          told = signal.reason
        })
        setImmediate(() => abort.abort(new Error('mine')))
        return new Promise<never>(() => {})
      }
    })
    expect(await store.sweep({ signal: abort.signal })).toMatchObject({
      aborted: 'Cancelled',
      cause: { message: 'mine' }
    })
    expect(told).toMatchObject({ message: 'mine' })
    expect(engine.leased).toBe(false)
  })

  it('that are asked for a delete when its caller gives up leave the caller its own reason', async () => {
    const { store, engine, keys } = await doomed()
    const abort = new AbortController()
    store.protect({
      name: 'app',
      isLive: () => {
        abort.abort(new Error('mine'))
        return new Promise<never>(() => {})
      }
    })
    expect(await rejection(store.delete(keys[0] as string, { signal: abort.signal }))).toMatchObject({
      message: 'mine'
    })
    expect(engine.entries.size).toBe(4)
    expect(engine.marks.size).toBe(0)
  })

  it('whose iterator is left early are told to clean up', async () => {
    const { store } = await doomed()
    let cleaned = 0
    store.protect({
      name: 'app',
      async *live() {
        try {
          yield 'oops'
        } finally {
          cleaned++
        }
      }
    })
    await store.sweep()
    await turn()
    expect(cleaned).toBe(1)
  })

  it('are loaded beside the lease where the catalog judges them itself, all of them before the first look', async () => {
    const engine = new Scripted({ judgesLive: true })
    const { store, keys } = await doomed(engine)
    store.protect({ name: 'app', live: () => keys })
    expect(await store.sweep()).toMatchObject({ cancelledByArbitration: 4, deleted: 0 })
    expect(engine.steps.indexOf('lease.live')).toBeLessThan(engine.steps.indexOf('due'))
    engine.failBefore('lease.live', cause)
    expect(await rejection(store.sweep())).toMatchObject({ code: 'ERR_BLOB_ENGINE', cause })
    expect(engine.leased).toBe(false)
  })
})
