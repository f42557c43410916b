import { EngineFault } from '@alkblobs/core/engine'
import { describe, expect, test } from 'vitest'
import { AGAIN, Joiner } from '../src/joiner.js'
import { call, sleep } from './fixture.js'

type Run = (items: readonly string[], alone: boolean) => Promise<readonly (string | typeof AGAIN)[]>

function joinerOf(run: Run, lanes = 1, lockTimeoutMs = 500) {
  const batches: string[][] = []
  const work = {
    run: (items: readonly string[], alone: boolean) => {
      batches.push([...items])
      return run(items, alone)
    },
    bytesOf: (item: string) => (item.startsWith('big') ? 2 ** 21 : 1),
    nameOf: (item: string) => item.slice(-1),
    isAlone: (item: string) => item.startsWith('alone')
  }
  return { batches, joiner: new Joiner<string, string>(work, lanes, lockTimeoutMs) }
}

const echo: Run = async items => items.map(item => item.toUpperCase())
const contention = () => Object.assign(new Error('lock timeout'), { code: '55P03' })

describe('the joiner', () => {
  test('puts what is submitted in one turn into one batch, and answers each call in its order', async () => {
    const { joiner, batches } = joinerOf(echo)
    const answers = await Promise.all([joiner.submit(['a', 'b'], call()), joiner.submit(['c'], call())])
    expect(answers).toEqual([['A', 'B'], ['C']])
    expect(batches).toEqual([['a', 'b', 'c']])
  })

  test('collects what comes while all lanes are taken', async () => {
    const { joiner, batches } = joinerOf(async items => {
      await sleep(30)
      return items
    })
    const first = joiner.submit(['a'], call())
    await sleep(5)
    await Promise.all([first, joiner.submit(['b'], call()), joiner.submit(['c'], call())])
    expect(batches).toEqual([['a'], ['b', 'c']])
  })

  test('bounds a batch by items and by bytes', async () => {
    const { joiner, batches } = joinerOf(echo)
    await joiner.submit(
      Array.from({ length: 300 }, (_, i) => `${i} x`),
      call()
    )
    expect(batches.map(batch => batch.length)).toEqual([256, 44])
    batches.length = 0
    await joiner.submit(['a', 'big b', 'c'], call())
    expect(batches).toEqual([['a', 'big b'], ['c']])
  })

  test('keeps items of one name out of lanes that run beside each other', async () => {
    const { joiner, batches } = joinerOf(async items => {
      await sleep(20)
      return items
    }, 2)
    const first = joiner.submit(['1 a'], call())
    await sleep(5)
    await Promise.all([first, joiner.submit(['2 a'], call()), joiner.submit(['b'], call())])
    expect(batches).toEqual([['1 a'], ['b'], ['2 a']])
  })

  test('runs an item again, alone, that could not be decided beside others', async () => {
    const { joiner, batches } = joinerOf(async (items, alone) =>
      items.map(item => (item === 'b' && !alone ? AGAIN : item))
    )
    expect(await joiner.submit(['a', 'b', 'c'], call())).toEqual(['a', 'b', 'c'])
    expect(batches).toEqual([['a', 'b', 'c'], ['b']])
  })

  test('runs each item of a failed batch alone, so that one fails only itself', async () => {
    const { joiner, batches } = joinerOf(async items => {
      if (items.includes('b')) throw new Error('b is bad')
      return items
    })
    const results = await Promise.allSettled(['a', 'b', 'c'].map(item => joiner.submit([item], call())))
    expect(results.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled'])
    expect(batches).toEqual([['a', 'b', 'c'], ['a'], ['b'], ['c']])
  })

  test('tells every item of a commit without an answer so, and does not run it again', async () => {
    const { joiner, batches } = joinerOf(async () => {
      throw new EngineFault('outcome-unknown', 'lost')
    })
    const results = await Promise.allSettled(['a', 'b'].map(item => joiner.submit([item], call())))
    expect(results.map(result => result.status === 'rejected' && result.reason.code)).toEqual([
      'outcome-unknown',
      'outcome-unknown'
    ])
    expect(batches).toEqual([['a', 'b']])
  })

  test('goes on while a lone item waits, and gives that one up after the lock timeout', async () => {
    const { joiner } = joinerOf(
      async (items, alone) => {
        if (!items.includes('b')) return items
        if (alone) await sleep(10)
        throw contention()
      },
      1,
      200
    )
    const started = performance.now()
    const stuck = joiner.submit(['b'], call()).catch(error => error.code)
    expect(await joiner.submit(['a'], call())).toEqual(['a'])
    expect(await joiner.submit(['c'], call())).toEqual(['c'])
    expect(performance.now() - started).toBeLessThan(150)
    expect(await stuck).toBe('conflict')
  })

  test('begins nothing for who does not wait any more', async () => {
    const { joiner, batches } = joinerOf(async items => {
      await sleep(30)
      return items
    })
    const controller = new AbortController()
    const first = joiner.submit(['a'], call())
    await sleep(5)
    const second = joiner.submit(['b'], call(1_000, controller.signal)).catch(error => error)
    const third = joiner.submit(['c'], call(10)).catch(error => error.code)
    controller.abort('enough')
    expect([await first, await second, await third]).toEqual([['a'], 'enough', 'transient'])
    expect(batches).toEqual([['a']])
  })
})
