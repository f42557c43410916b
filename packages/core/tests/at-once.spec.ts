/** What an engine has at once saves a call into it, and nothing else: what it cannot say, or says wrongly, is as it would be without. */
import { tracingChannel } from 'node:diagnostics_channel'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import type { BlobKey, BodyStore, Catalog, Engine, EngineDefinition } from '../src/engine.js'
import { CorruptBlobError, EngineError, openStore, type Store, StoreClosedError } from '../src/index.js'
import { ABSENT, bytes, rejection, THRESHOLD } from './opened.js'
import { Scripted } from './scripted-engine.js'

const SMALL = bytes(THRESHOLD)
const LARGE = bytes(100)

interface Answers {
  catalog: NonNullable<Catalog['readNow']>
  bodies: NonNullable<BodyStore['readNow']>
}

/** The engine with its methods replaced by some that answer at once. */
function answering(definition: EngineDefinition, change: (engine: Engine) => Partial<Engine>): EngineDefinition {
  return {
    name: definition.name,
    open: async context => {
      const engine = await definition.open(context)
      return { ...engine, ...change(engine) }
    }
  }
}

/** A store with a small and a large blob over media that answer at once, and what it asked of them by calls since. */
async function opened() {
  const engine = new Scripted()
  const answers: Answers = {
    catalog: key => {
      const found = engine.entries.get(key)
      return found && { entry: found.entry, ...(found.body && { body: Uint8Array.from(found.body) }) }
    },
    bodies: (locator, { start, end }) => Uint8Array.from(engine.bodies.get(locator)?.bytes.subarray(start, end) ?? [])
  }
  const store = await openStore({
    kv: answering(engine.kv, ({ catalog }) => ({
      catalog: { ...(catalog as Catalog), readNow: key => answers.catalog(key) }
    })),
    large: answering(engine.large, ({ bodies }) => ({
      bodies: { ...(bodies as BodyStore), readNow: (locator, range) => answers.bodies(locator, range) }
    })),
    threshold: THRESHOLD,
    trashDelayMs: 0,
    operationTimeoutMs: 150
  })
  onTestFinished(() => store.close().catch(() => {}))
  const small = await store.put(SMALL, { pin: false })
  const large = await store.put(LARGE, { pin: false })
  engine.steps.length = 0
  return { engine, answers, store, small: small.key, large: large.key }
}

/** No turn lasts long enough then to be given up, however slow this machine is. */
function clockStands(): void {
  const clock = vi.spyOn(performance, 'now').mockReturnValue(performance.now())
  onTestFinished(() => clock.mockRestore())
}

const contentOf = async (store: Store, key: string) => (await store.get(key))?.bytes()

describe('what an engine has at once', () => {
  it('is got without a call: entries, bodies, parts', async () => {
    clockStands()
    const { engine, store, small, large } = await opened()
    expect(await contentOf(store, small)).toEqual(SMALL)
    expect(await contentOf(store, large)).toEqual(LARGE)
    const blob = await store.get(large)
    expect(await blob?.slice(10, 20).bytes()).toEqual(LARGE.slice(10, 20))
    expect(await blob?.slice(10, 20).slice(2, 3).bytes()).toEqual(LARGE.slice(12, 13))
    expect((await blob?.slice(5, 5).bytes())?.length).toBe(0)
    expect(engine.steps).toEqual([])
  })

  it('comes as bytes and nothing beside them, of which the caller is the owner', async () => {
    clockStands()
    const { answers, engine, store, large } = await opened()
    answers.bodies = (locator, { start, end }) => {
      const held = engine.bodies.get(locator)?.bytes.subarray(start, end) ?? new Uint8Array()
      const given = Buffer.allocUnsafeSlow(held.length)
      given.set(held)
      return given
    }
    const part = await (await store.get(large))?.slice(0, 50).bytes()
    expect(Object.getPrototypeOf(part)).toBe(Uint8Array.prototype)
    expect(part).toEqual(LARGE.slice(0, 50))
  })

  it('is verified where it is the whole, and not where it is a part or nobody wants it', async () => {
    const { engine, store, small, large } = await opened()
    for (const found of engine.entries.values()) found.body?.fill(0)
    for (const body of engine.bodies.values()) body.bytes.fill(0)
    for (const key of [small, large]) {
      expect(await rejection(contentOf(store, key))).toBeInstanceOf(CorruptBlobError)
      expect(await (await store.get(key))?.slice(1).bytes()).toContain(0)
      expect(await (await store.get(key, { verify: false }))?.bytes()).toContain(0)
    }
  })

  it.each<[string, (answers: Answers) => void]>([
    [
      'says nothing',
      answers => {
        answers.catalog = () => undefined
        answers.bodies = () => undefined
      }
    ],
    [
      'fails',
      answers => {
        answers.catalog = () => {
          throw new Error('locked')
        }
        answers.bodies = () => {
          throw new Error('gone')
        }
      }
    ]
  ])('is asked for by a call where the engine %s', async (_, change) => {
    const { engine, answers, store, small, large } = await opened()
    change(answers)
    expect(await contentOf(store, small)).toEqual(SMALL)
    expect(engine.steps).toEqual(['read'])
    expect(await contentOf(store, large)).toEqual(LARGE)
    expect(engine.steps.slice(1, 3)).toEqual(['read', 'body.read'])
  })

  it('does not say that there is nothing: a call does', async () => {
    const { engine, store } = await opened()
    expect(await store.get(ABSENT)).toBeUndefined()
    expect(engine.steps).toEqual(['read'])
  })

  it('is stopped at where it breaks the contract', async () => {
    clockStands()
    const { answers, store, small, large } = await opened()
    const { catalog, bodies } = answers
    const broken = async (call: Promise<unknown>) => {
      expect(await rejection(call)).toBeInstanceOf(EngineError)
    }
    answers.catalog = key => {
      const found = catalog(key)
      return found && { ...found, entry: { ...found.entry, key: ABSENT } }
    }
    await broken(store.get(small))
    answers.catalog = key => {
      const found = catalog(key)
      return found && { entry: found.entry }
    }
    await broken(store.get(small))
    const blob = await store.get(large)
    answers.bodies = (locator, { start, end }) => bodies(locator, { start, end: end - 1 })
    await broken(blob?.slice(0, 50).bytes() ?? Promise.resolve())
    answers.bodies = (locator, range) => bodies(locator, { start: 0, end: 100 })?.subarray(range.start, range.end)
    await broken(blob?.slice(0, 50).bytes() ?? Promise.resolve())
  })

  it('is asked for by a call, which gives the event loop its turn, in a turn that has lasted long enough', async () => {
    const { answers, store, large } = await opened()
    const { bodies } = answers
    answers.bodies = (locator, range) => {
      for (const end = performance.now() + 2; performance.now() < end; );
      return bodies(locator, range)
    }
    const blob = await store.get(large)
    const late = AbortSignal.timeout(20)
    let count = 0
    // Twenty times as long as the timer: without a turn it would fire after the last read.
    while (!late.aborted && count < 200) {
      await blob?.slice(0, 50).bytes()
      count += 1
    }
    expect(count).toBeLessThan(200)
  })

  it('is refused by a closed store and by a signal that has fired', async () => {
    const { engine, store, small, large } = await opened()
    const stop = new AbortController()
    const [blob, cancelled] = [await store.get(large), await store.get(large, { signal: stop.signal })]
    const reason = new Error('enough')
    stop.abort(reason)
    expect(await rejection(store.get(small, { signal: stop.signal }))).toBe(reason)
    expect(await rejection(cancelled?.slice(1).bytes() ?? Promise.resolve())).toBe(reason)
    await store.close()
    engine.steps.length = 0
    expect(await rejection(store.get(small))).toBeInstanceOf(StoreClosedError)
    expect(await rejection(blob?.slice(1).bytes() ?? Promise.resolve())).toBeInstanceOf(StoreClosedError)
    expect(engine.steps).toEqual([])
  })

  it('is told of like any other get to whoever listens', async () => {
    const { store, small } = await opened()
    const told: unknown[] = []
    const channel = tracingChannel<string, object>('alkblobs:get')
    const subscribers = { asyncEnd: (message: object) => void told.push({ ...message }) }
    channel.subscribe(subscribers as never)
    onTestFinished(() => void channel.unsubscribe(subscribers as never))
    expect(await contentOf(store, small)).toEqual(SMALL)
    expect(told).toMatchObject([{ operation: 'get', key: small, length: THRESHOLD, tier: 'kv' }])
  })
})

/** A store whose catalog reads many together, by `readTogether`, and what was read in the course of it. */
async function openedTogether(readTogether: (reads: () => void) => void) {
  const engine = new Scripted()
  const reads: string[] = []
  const readNow = (key: BlobKey) => {
    reads.push(key)
    const found = engine.entries.get(key)
    return found && { entry: found.entry, ...(found.body && { body: Uint8Array.from(found.body) }) }
  }
  const kv = answering(engine.kv, ({ catalog }) => ({ catalog: { ...(catalog as Catalog), readNow, readTogether } }))
  const store = await openStore({ kv, threshold: THRESHOLD })
  onTestFinished(() => store.close().catch(() => {}))
  const contents = [1, 2, 3, 4, 5].map(n => bytes(THRESHOLD - n))
  const keys: BlobKey[] = []
  for (const content of contents) keys.push((await store.put(content, { pin: false })).key)
  engine.steps.length = 0
  const contentsNow = () => Promise.all(keys.map(key => contentOf(store, key)))
  return { engine, store, reads, keys, contents, contentsNow }
}

describe('gets that are asked for in one run of promises', () => {
  it('are read together, after the last of them was asked for, and none of them by a call', async () => {
    clockStands()
    const spans: string[][] = []
    const { engine, reads, keys, contents, contentsNow } = await openedTogether(each => {
      reads.length = 0
      each()
      spans.push([...reads])
    })
    expect(await contentsNow()).toEqual(contents)
    expect(await contentsNow()).toEqual(contents)
    expect(spans).toEqual([keys, keys])
    expect(engine.steps).toEqual([])
  })

  it('see what came between their being asked for and being read', async () => {
    clockStands()
    const { engine, store, keys } = await openedTogether(each => each())
    const [first, second] = keys as [BlobKey, BlobKey]
    const asked = [store.get(first), store.get(second)]
    // Nothing was read yet: whoever removes an entry now, or makes one, comes first.
    engine.entries.delete(first)
    expect((await Promise.all(asked)).map(blob => blob?.key)).toEqual([undefined, second])
  })

  it('are not read together where one comes alone', async () => {
    clockStands()
    let count = 0
    const { store, keys, contents } = await openedTogether(each => {
      count++
      each()
    })
    for (const [i, key] of keys.entries()) expect(await contentOf(store, key)).toEqual(contents[i])
    expect(count).toBe(0)
  })

  it.each<[string, (each: () => void) => void]>([
    [
      'fails before it reads',
      () => {
        throw new Error('moved')
      }
    ],
    ['reads nothing', () => {}],
    [
      'fails after it has read',
      each => {
        each()
        throw new Error('moved')
      }
    ]
  ])('are answered all the same where the engine %s', async (_, readTogether) => {
    const { contents, contentsNow } = await openedTogether(readTogether)
    expect(await contentsNow()).toEqual(contents)
  })

  it('fail one by one', async () => {
    clockStands()
    const { engine, store, keys } = await openedTogether(each => each())
    const [first, second, third] = keys as [BlobKey, BlobKey, BlobKey]
    const found = engine.entries.get(first)
    engine.entries.set(second, { ...(found as NonNullable<typeof found>) })
    const settled = await Promise.allSettled([store.get(first), store.get(second), store.get('none'), store.get(third)])
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'rejected', 'fulfilled'])
  })

  it('fail where what the catalog offers cannot be looked at any more, and the store closes all the same', async () => {
    const { engine } = await openedTogether(each => each())
    const failure = new Error('no property of mine')
    let isBroken = false
    const kv = answering(engine.kv, ({ catalog }) => ({
      catalog: {
        ...(catalog as Catalog),
        get readNow() {
          if (isBroken) throw failure
          return () => undefined
        }
      }
    }))
    const store = await openStore({ kv, threshold: THRESHOLD })
    isBroken = true
    expect(await Promise.all([store.get(ABSENT), store.get(ABSENT)].map(rejection))).toEqual([failure, failure])
    await store.close()
  })

  it('are waited for by a store that is closed before they are read', async () => {
    const { store, keys, contents } = await openedTogether(each => each())
    const asked = [...keys, ABSENT].map(key => store.get(key))
    const closed = store.close()
    const blobs = await Promise.all(asked)
    await closed
    expect(blobs.map(blob => blob?.size)).toEqual([...contents.map(({ length }) => length), undefined])
    expect(await rejection(store.get(ABSENT))).toBeInstanceOf(StoreClosedError)
  })
})
