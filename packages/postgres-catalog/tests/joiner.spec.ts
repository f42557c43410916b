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
    isAlone: (item: string) => item.startsWith('alone'),
    kindOf: (item: string) => (item.startsWith('other') ? 'other' : 'one')
  }
  return { batches, joiner: new Joiner<string, string>(work, lanes, lockTimeoutMs) }
}

/** A run that waits until it is let go on; `begun` resolves when one has come so far. */
function held() {
  let begin = () => {}
  let letGo = () => {}
  const begun = new Promise<void>(resolve => {
    begin = resolve
  })
  const gate = new Promise<void>(resolve => {
    letGo = resolve
  })
  const run: Run = async items => {
    begin()
    await gate
    return items
  }
  return { run, begun, letGo }
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

  test('keeps kinds apart: the head of the queue says which is next', async () => {
    const { joiner, batches } = joinerOf(echo)
    const answers = await joiner.submit(['a', 'other b', 'c', 'other d'], call())
    expect(answers).toEqual(['A', 'OTHER B', 'C', 'OTHER D'])
    expect(batches).toEqual([
      ['a', 'c'],
      ['other b', 'other d']
    ])
  })

  test('collects what comes while all lanes are taken', async () => {
    const { run, begun, letGo } = held()
    const { joiner, batches } = joinerOf(run)
    const first = joiner.submit(['a'], call())
    await begun
    const others = [joiner.submit(['b'], call()), joiner.submit(['c'], call())]
    letGo()
    await Promise.all([first, ...others])
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
    const { run, begun, letGo } = held()
    const { joiner, batches } = joinerOf(run, 2)
    const first = joiner.submit(['1 a'], call())
    await begun
    const others = [joiner.submit(['2 a'], call()), joiner.submit(['b'], call())]
    while (batches.length < 2) await sleep(1)
    letGo()
    await Promise.all([first, ...others])
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
      1_000
    )
    let isStuck = true
    const stuck = joiner
      .submit(['b'], call())
      .catch(error => error.code)
      .finally(() => {
        isStuck = false
      })
    expect(await joiner.submit(['a'], call())).toEqual(['a'])
    expect(await joiner.submit(['c'], call())).toEqual(['c'])
    expect(isStuck).toBe(true)
    expect(await stuck).toBe('conflict')
  })

  test('begins nothing for who does not wait any more', async () => {
    const { run, begun, letGo } = held()
    const { joiner, batches } = joinerOf(run)
    const controller = new AbortController()
    const first = joiner.submit(['a'], call())
    await begun
    const second = joiner.submit(['b'], call(10_000, controller.signal)).catch(error => error)
    const soon = call(10)
    const third = joiner.submit(['c'], soon).catch(error => error.code)
    controller.abort('enough')
    while (performance.now() <= soon.deadlineMs) await sleep(1)
    letGo()
    expect([await first, await second, await third]).toEqual([['a'], 'enough', 'transient'])
    expect(batches).toEqual([['a']])
  })
})
