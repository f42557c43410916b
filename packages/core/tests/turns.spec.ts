// A run of calls that an engine answers at once must not keep timers, signals and renewals waiting until its end.
import { pbkdf2 } from 'node:crypto'
import { promisify } from 'node:util'
import { expect, it } from 'vitest'
import type { Engine } from '../src/engine.js'
import { EngineCalls } from '../src/engine-calls.js'

const engine: Engine = {
  name: 'quick',
  version: '0',
  durability: 'process',
  classify: () => 'unknown',
  close: async () => {}
}

/** Keeps the processor for a while, as a call into a database in this process does. */
function work(ms: number): void {
  for (const end = performance.now() + ms; performance.now() < end; );
}

it('lets a timer fire in the middle of a long run of calls', async () => {
  const calls = new EngineCalls(engine, 1_000)
  const late = AbortSignal.timeout(20)
  let count = 0
  // Twenty times as long as the timer: without a turn it would fire after the last call.
  while (!late.aborted && count < 200) {
    await calls.run('look', { readOnly: true }, async () => work(2))
    count += 1
  }
  expect(count).toBeLessThan(200)
  await calls.close()
})

it('costs a call that stands alone no turn', async () => {
  const calls = new EngineCalls(engine, 1_000)
  await new Promise(setImmediate)
  let turned = false
  setImmediate(() => {
    turned = true
  })
  await calls.run('look', { readOnly: true }, async () => 'at once')
  expect(turned).toBe(false)
  await calls.close()
})

it('ends a turn with the event loop’s, however long that waits for input then', async () => {
  const input = promisify(pbkdf2)
  const calls = new EngineCalls(engine, 1_000)
  for (let i = 0; i < 5; i++) {
    // From here the event loop goes to wait for input first.
    await new Promise(setImmediate)
    expect(calls.readNow({ readNow: () => 'at once' })).toBe('at once')
    // Brought by the event loop's wait for input, more than a turn later.
    await input('', '', 200_000, 32, 'sha256')
    expect(calls.readNow({ readNow: () => 'at once' })).toBe('at once')
  }
  await calls.close()
})

it('lets a timer fire in the middle of many looks begun at once, and takes each in its turn', async () => {
  const calls = new EngineCalls(engine, 1_000)
  const begun: number[] = []
  const look = (i: number) =>
    calls.run('look', { readOnly: true }, async () => {
      begun.push(i)
      work(2)
    })
  const all = Promise.all(Array.from({ length: 100 }, (_, i) => look(i)))
  await new Promise(resolve => setTimeout(resolve, 20))
  expect(begun.length).toBeLessThan(100)
  await all
  expect(begun).toEqual(Array.from({ length: 100 }, (_, i) => i))
  await calls.close()
})

it('does not begin a look whose deadline passed while it waited for its turn, and waits for none of them at the end', async () => {
  const calls = new EngineCalls(engine, 60)
  let begun = 0
  const look = () =>
    calls.run('look', { readOnly: true }, async () => {
      begun++
      work(5)
    })
  const settled = await Promise.allSettled(Array.from({ length: 100 }, look))
  const late = settled.filter(({ status }) => status === 'rejected')
  expect(late.length).toBeGreaterThan(0)
  await calls.close()
  expect(begun).toBe(100 - late.length)
})
