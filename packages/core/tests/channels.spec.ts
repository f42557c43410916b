import { tracingChannel } from 'node:diagnostics_channel'
import { describe, expect, it, onTestFinished } from 'vitest'
import { bytes, opened, rejection } from './opened.js'

type Message = Record<string, unknown>

/** Everything that one channel says during a test. */
function watched(operation: string) {
  const said: { event: string; message: Message }[] = []
  const channel = tracingChannel<string, object>(`alkblobs:${operation}`)
  const on = (event: string) => (message: unknown) => void said.push({ event, message: { ...(message as Message) } })
  const subscribers = {
    start: on('start'),
    end: on('end'),
    asyncStart: on('asyncStart'),
    asyncEnd: on('asyncEnd'),
    error: on('error')
  }
  channel.subscribe(subscribers)
  onTestFinished(() => void channel.unsubscribe(subscribers))
  return said
}

describe('channels', () => {
  it('tell of a put its key, length, tier, durability and duration', async () => {
    const said = watched('put')
    const { store } = await opened()
    for (const [length, tier] of [
      [3, 'kv'],
      [100, 'large']
    ] as const) {
      said.length = 0
      const { key } = await store.put(bytes(length))
      expect(said.map(({ event }) => event)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd'])
      const { durationMs, ...message }: Message = said.at(-1)?.message ?? {}
      expect(message).toMatchObject({ operation: 'put', key, length, tier, durability: 'disk' })
      expect(durationMs).toBeGreaterThanOrEqual(0)
    }
  })

  it.each(['get', 'delete', 'pin', 'sweep', 'maintain', 'verify'] as const)('tell of %s', async operation => {
    const { store } = await opened()
    const receipt = await store.put('a')
    await receipt.release()
    store.protect({ name: 'app', live: () => [] })
    const said = watched(operation)
    await (operation === 'get' || operation === 'delete' || operation === 'pin'
      ? store[operation](receipt.key)
      : store[operation]())
    expect(said.map(({ event }) => event)).toEqual(['start', 'end', 'asyncStart', 'asyncEnd'])
    expect(said.at(-1)?.message).toMatchObject({ operation, durationMs: expect.any(Number) })
    if (operation !== 'sweep' && operation !== 'maintain' && operation !== 'verify') {
      expect(said.at(-1)?.message).toMatchObject({ key: receipt.key })
    }
  })

  it('tell of a failure, with its error, and the caller gets the same', async () => {
    const said = watched('put')
    const { store, engine } = await opened()
    engine.failBefore('publish')
    const error = await rejection(store.put('a'))
    expect(said.find(({ event }) => event === 'error')?.message.error).toBe(error)
  })

  it.each(['get', 'delete', 'pin'] as const)(
    'tell of a %s that is refused for its key or its signal',
    async operation => {
      const { store } = await opened()
      const { key } = await store.put('a')
      const said = watched(operation)
      const reason = new Error('enough')
      for (const [asked, options] of [
        ['none', {}],
        [key, { signal: AbortSignal.abort(reason) }]
      ] as const) {
        said.length = 0
        const error = await rejection(store[operation](asked, options))
        expect(said.map(({ event }) => event)).toEqual(['start', 'end', 'error', 'asyncStart', 'asyncEnd'])
        expect(said.at(-1)?.message.error).toBe(error)
      }
    }
  )

  it('change nothing for who does not listen', async () => {
    const { store } = await opened()
    expect((await store.put('a')).created).toBe(true)
  })

  it('carry no content', async () => {
    const said = watched('put')
    const gets = watched('get')
    const { store } = await opened()
    const { key } = await store.put('secret-content')
    await store.get(key)
    for (const { message } of [...said, ...gets]) {
      expect(JSON.stringify(message, (_, value) => (value instanceof Uint8Array ? 'bytes' : value))).not.toMatch(
        /secret|bytes"/
      )
    }
  })
})
