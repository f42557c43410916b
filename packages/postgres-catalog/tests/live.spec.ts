import type { Call } from '@alkblobs/core/engine'
import type { Session } from '@alkblobs/postgres-session'
import { describe, expect, test } from 'vitest'
import { LiveKeys } from '../src/catalog/live.js'
import { call, digestsOf } from './fixture.js'

/** A session that takes copies: those it was told of, each to be ended by the test. */
function server() {
  const said: string[] = []
  const copies: { readonly count: number; end(error?: Error): void }[] = []
  const session = {
    run: async (text: string) => said.push(text.split(' ')[0] as string),
    copyIn: (_: string, chunks: readonly Uint8Array[]) => {
      const length = chunks.reduce((sum, chunk) => sum + chunk.length, 0)
      return new Promise<void>((resolve, reject) => {
        const end = (error?: Error) => {
          if (error === undefined) said.push(`COPY ${(length - 21) / 38}`)
          return error === undefined ? resolve() : reject(error)
        }
        copies.push({ count: (length - 21) / 38, end })
      })
    }
  } as unknown as Session
  let turn: Promise<unknown> = Promise.resolve()
  const say = <T>(_: Call, work: (session: Session) => Promise<T>) => {
    const mine = turn.then(() => work(session))
    turn = mine.catch(() => undefined)
    return mine
  }
  return { live: new LiveKeys({ say }), said, copies }
}

const turns = () => new Promise(resolve => setImmediate(resolve))
const some = (count: number, from = 0) => digestsOf(Array.from({ length: count }, (_, n) => from + n))
const MANY = 16_384

describe('live keys', () => {
  test('are copied while the next ones come, one copy at a time, and all are there before anybody looks', async () => {
    const { live, said, copies } = server()
    await live.add(some(10), call())
    expect(live.isFilled).toBe(true)
    await live.add(some(MANY), call())
    await turns()
    expect(copies.map(({ count }) => count)).toEqual([MANY + 10])
    let isAdded = false
    const adding = live.add(some(MANY), call()).then(() => {
      isAdded = true
    })
    await turns()
    expect([isAdded, copies.length]).toEqual([false, 1])
    copies[0]?.end()
    await adding
    await live.add(some(5), call())
    const ready = live.prepare(call())
    await turns()
    expect(copies.map(({ count }) => count)).toEqual([MANY + 10, MANY])
    copies[1]?.end()
    await turns()
    copies[2]?.end()
    await ready
    expect(said).toEqual(['CREATE', `COPY ${MANY + 10}`, `COPY ${MANY}`, 'COPY 5'])
  })

  test('that could not be copied are not forgotten: whoever goes on fails again, until they are', async () => {
    const { live, said, copies } = server()
    const cause = new Error('no line')
    await live.add(some(MANY), call())
    await turns()
    copies[0]?.end(cause)
    await expect(live.add(some(MANY, MANY), call())).rejects.toBe(cause)
    for (const look of ['prepare', 'order'] as const) {
      const looking = live[look](call())
      await turns()
      copies.at(-1)?.end(cause)
      await expect(looking, look).rejects.toBe(cause)
    }
    await live.add(some(3), call())
    await turns()
    const ready = live.order(call())
    copies.at(-1)?.end()
    await ready
    expect(said).toEqual(['CREATE', `COPY ${2 * MANY + 3}`, 'CREATE', 'VACUUM'])
  })

  test('are put in order once, where they are many or are asked for one by one', async () => {
    for (const [count, look, orders] of [
      [250_000, 'prepare', 0],
      [250_001, 'prepare', 1],
      [1, 'order', 1],
      [0, 'order', 0]
    ] as const) {
      const { live, said, copies } = server()
      await live.add(some(count), call())
      for (let again = 0; again < 2; again++) {
        const looking = live[look](call())
        await turns()
        for (const copy of copies) copy.end()
        await looking
      }
      expect([said.filter(word => word === 'VACUUM').length, live.isOrdered], `${count}`).toEqual([
        orders,
        orders === 1
      ])
    }
  })
})
