import { describe, expect, it } from 'vitest'
import { Lifecycle } from '../src/lifecycle.js'
import { ABSENT, bytes, NOTHING, opened, rejection, turn, within } from './opened.js'

describe('a lifecycle', () => {
  it('refuses what comes after close, and close is one promise', async () => {
    const lifecycle = new Lifecycle()
    let releases = 0
    const release = async () => void releases++
    const [first, second] = [lifecycle.close(0, release), lifecycle.close(0, release)]
    expect(first).toBe(second)
    expect(() => lifecycle.assertOpen()).toThrow(expect.objectContaining({ code: 'ERR_BLOB_STORE_CLOSED' }))
    expect(await rejection(lifecycle.run(async () => 1))).toMatchObject({ code: 'ERR_BLOB_STORE_CLOSED' })
    await first
    expect(releases).toBe(1)
  })

  it('interrupts what runs, waits for its end, then releases; ending twice counts once', async () => {
    const lifecycle = new Lifecycle()
    const order: string[] = []
    const [one, two] = [lifecycle.begin(), lifecycle.begin()]
    lifecycle.closing.addEventListener('abort', () => order.push('interrupt'))
    const closed = lifecycle.close(0, async () => void order.push('release'))
    await turn()
    one()
    one()
    await turn()
    expect(order).toEqual(['interrupt'])
    two()
    await closed
    expect(order).toEqual(['interrupt', 'release'])
    expect(lifecycle.closing.reason).toMatchObject({ code: 'ERR_BLOB_STORE_CLOSED' })
  })

  it('lets what runs go on for the drain, no longer, and not that long when it ends by itself', async () => {
    const slow = new Lifecycle()
    slow.begin()
    void slow.close(60_000, async () => {})
    await turn()
    expect(slow.closing.aborted).toBe(false)
    const hanging = new Lifecycle()
    const end = hanging.begin()
    hanging.closing.addEventListener('abort', end)
    expect(
      await within(
        5_000,
        hanging.close(20, async () => {})
      )
    ).not.toBe('hangs')
    const quick = new Lifecycle()
    const ended = quick.begin()
    const closed = quick.close(60_000, async () => {})
    ended()
    expect(await within(5_000, closed)).not.toBe('hangs')
  })

  it('counts an operation that throws as ended', async () => {
    const lifecycle = new Lifecycle()
    await rejection(
      lifecycle.run(async () => {
        throw new Error('own')
      })
    )
    expect(
      await within(
        1_000,
        lifecycle.close(0, async () => {})
      )
    ).not.toBe('hangs')
  })
})

describe('a store that is closed', () => {
  it('refuses every method with the same code, and touches nothing', async () => {
    const { store, engine } = await opened()
    const { key } = await store.put('a')
    const blob = await store.get(key)
    const part = blob?.slice(0, 1)
    await store.close()
    const before = engine.steps.length
    const calls: Record<string, () => unknown> = {
      put: () => store.put('b'),
      writer: () => store.writer(),
      get: () => store.get(key),
      stat: () => store.stat(key),
      has: () => store.has(key),
      hasMany: () => store.hasMany([key]),
      list: () => store.list().next(),
      delete: () => store.delete(key),
      deleteMany: () => store.deleteMany([key]),
      pin: () => store.pin(key),
      pins: () => store.pins(),
      protect: () => store.protect({ name: 'x', live: () => [] }),
      sweep: () => store.sweep(),
      maintain: () => store.maintain(),
      verify: () => store.verify(),
      usage: () => store.usage(),
      why: () => store.why(key),
      settings: () => store.settings(),
      configure: () => store.configure({ windowDelayMs: 1 }),
      backup: () => store.backup(() => undefined),
      fork: () => store.fork(),
      acknowledgeMove: () => store.acknowledgeMove(),
      'blob.bytes': () => blob?.bytes(),
      'blob.text': () => blob?.text(),
      'slice.bytes': () => part?.bytes(),
      'blob.stream': () => blob?.stream().getReader().read(),
      'blob iterator': () => blob?.[Symbol.asyncIterator]().next()
    }
    for (const [name, call] of Object.entries(calls)) {
      const error = await rejection((async () => call())())
      expect(error, name).toMatchObject({ code: 'ERR_BLOB_STORE_CLOSED' })
    }
    expect(engine.steps.length).toBe(before)
    await store.close()
    await store[Symbol.asyncDispose]()
  })
})

describe('closing a store', () => {
  it('ends a writer that waits for its chunks, and what it made', async () => {
    const { store, engine } = await opened()
    const writer = store.writer()
    await writer.write(bytes(2_000_000))
    expect(await within(2_000, store.close())).not.toBe('hangs')
    expect(await rejection(writer.write(bytes(1)))).toMatchObject({ code: 'ERR_BLOB_STORE_CLOSED' })
    expect(await rejection(writer.commit())).toMatchObject({ code: 'ERR_BLOB_STORE_CLOSED' })
    expect(engine.residue).toEqual(NOTHING)
  })

  it('ends a reader that waits for its consumer, and frees the medium at once', async () => {
    const { store, engine } = await opened()
    engine.readLength = 10
    const { key } = await store.put(bytes(100))
    const iterator = (await store.get(key))?.[Symbol.asyncIterator]()
    await iterator?.next()
    expect(engine.open).toBe(1)
    expect(await within(2_000, store.close())).not.toBe('hangs')
    expect(engine.open).toBe(0)
    expect(await rejection(iterator?.next() as Promise<unknown>)).toMatchObject({ code: 'ERR_BLOB_STORE_CLOSED' })
  })

  it.each([
    ['longer than accepted', { length: 10, maxLength: 5 }],
    ['under a signal that has fired', { signal: AbortSignal.abort() }],
    ['with an option of a wrong type', { length: -1 }]
  ])('does not wait for a writer that was refused: %s', async (_, options) => {
    const { store } = await opened({ putsMax: 1 })
    expect(() => store.writer(options)).toThrow()
    expect(() => store.writer(options)).not.toThrow(/putsMax/)
    expect(await within(2_000, store.close())).not.toBe('hangs')
  })

  it('ends a sweep, a delete and a why that wait for a source', async () => {
    const { store } = await opened()
    const receipt = await store.put('a')
    await receipt.release()
    let asked = () => {}
    const hanging = new Promise<void>(resolve => {
      asked = resolve
    })
    store.protect({
      name: 'app',
      isLive: () => {
        asked()
        return new Promise<never>(() => {})
      }
    })
    const deletes = rejection(store.delete(receipt.key))
    const why = rejection(store.why(receipt.key))
    const sweeps = store.sweep()
    await hanging
    expect(await within(2_000, store.close())).not.toBe('hangs')
    expect(await sweeps).toMatchObject({ aborted: 'Cancelled' })
    expect(await deletes).toMatchObject({ code: 'ERR_BLOB_STORE_CLOSED' })
    expect(await why).toMatchObject({ code: 'ERR_BLOB_STORE_CLOSED' })
  })

  it('lets puts go on while it drains', async () => {
    const { store } = await opened({ drainMs: 30_000 })
    let give: (() => void) | undefined
    const slow = async function* () {
      yield bytes(10)
      await new Promise<void>(resolve => {
        give = resolve
      })
      yield bytes(10)
    }
    const put = store.put(slow())
    while (give === undefined) await turn()
    const closed = store.close()
    expect(await rejection(store.has(ABSENT))).toMatchObject({ code: 'ERR_BLOB_STORE_CLOSED' })
    give()
    expect((await put).length).toBe(20)
    await closed
  })
})
