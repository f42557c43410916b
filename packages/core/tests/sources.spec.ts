/** Liveness sources one by one: what is one, how it is asked, in which batches its keys are taken, and whose failure is whose. */
import { getEventListeners } from 'node:events'
import { describe, expect, it, onTestFinished, vi } from 'vitest'
import { InvalidArgumentError } from '../src/errors.js'
import { type BlobKey, digestOf, formatKey } from '../src/key.js'
import { DIGEST_LENGTH, LIVE_BATCH } from '../src/limits.js'
import { assertSource, assertTable, isTable, type LivenessSource, LivenessView } from '../src/sweep/liveness.js'
import { SweepStop } from '../src/sweep/report.js'
import { rejection } from './opened.js'

const live = () => []
const isLive = () => []

function keysUpTo(count: number): BlobKey[] {
  return Array.from({ length: count }, (_, n) => {
    const digest = Buffer.alloc(32)
    digest.writeUInt32BE(n)
    return formatKey('blake3', digest)
  })
}
const [K0, K1, K2] = keysUpTo(3) as [BlobKey, BlobKey, BlobKey]

function viewOf(...sources: readonly object[]): LivenessView {
  return new LivenessView(sources as LivenessSource[], 'blake3', [])
}

async function liveAmong(
  answer: Awaited<ReturnType<LivenessView['ask']>>,
  keys: readonly BlobKey[]
): Promise<BlobKey[]> {
  const live = await answer.among(keys)
  return keys.filter(key => live.has(key))
}

describe('a source', () => {
  it.each([
    [null, /^source .*a liveness source/],
    [undefined, /^source .*a liveness source/],
    ['app', /^source .*a liveness source/],
    [live, /^source .*a liveness source/],
    [{ live }, /^source\.name .*a name/],
    [{ name: '', live }, /^source\.name .*a name/],
    [{ name: 7, live }, /^source\.name .*a name/],
    [{ name: 'app' }, /^source .*either live\(signal\) or isLive\(keys, signal\)/],
    [{ name: 'app', live, isLive }, /^source .*either live/],
    [{ name: 'app', live: 'yes' }, /^source .*either live/],
    [{ name: 'app', isLive: 'yes' }, /^source .*either live/],
    ...[0, -1, 1.5, 2 ** 31, Number.NaN, '30', null].map(
      timeoutMs =>
        [{ name: 'app', live, timeoutMs }, /^source\.timeoutMs .*a positive whole number of milliseconds/] as const
    )
  ] as const)('is not %j, and the refusal says which part', (given, message) => {
    const refuse = () => assertSource(given as never)
    expect(refuse).toThrow(InvalidArgumentError)
    try {
      refuse()
    } catch (error) {
      expect((error as Error).message.replace(/^the argument |^argument /, '')).toMatch(message)
    }
  })

  it.each([
    { name: 'a', live },
    { name: 'app', isLive },
    { name: 'app', live, isLive: 'no function' },
    { name: 'app', isLive, live: undefined },
    ...[1, 30, 2 ** 31 - 1, undefined].map(timeoutMs => ({ name: 'app', live, timeoutMs }))
  ])('is %j', given => {
    assertSource(given as LivenessSource)
  })
})

describe('a table', () => {
  it('is told from a source by having that name, and from what is no object', () => {
    expect([{ table: 'docs' }, { table: undefined }].map(each => isTable(each as never))).toEqual([true, true])
    expect([{ name: 'app', live }, null, undefined, 'table', 7].map(each => isTable(each as never))).toEqual(
      Array(5).fill(false)
    )
  })

  const LONGEST = 'n'.repeat(255)
  it.each([
    ['docs', 'key'],
    ['a.b', 'ä'],
    [LONGEST, LONGEST]
  ])('is %s, %s', (table, column) => {
    assertTable({ table, column })
  })

  it.each(['', 'a\0b', `${LONGEST}n`, 7, null, undefined])(
    'is none with the name %j, and the refusal says which',
    name => {
      const given = name as string
      expect(() => assertTable({ table: given, column: 'key' })).toThrow(/source\.table.*the name of a table/)
      expect(() => assertTable({ table: 'docs', column: given })).toThrow(/source\.column.*the name of a column/)
    }
  )
})

describe('asking', () => {
  it('names those that call a key live, by either question', async () => {
    const asked: unknown[] = []
    const view = viewOf(
      { name: 'all', live: () => [K0, K1] },
      { name: 'none', live: () => [] },
      { name: 'other', live: () => [K2, K2] },
      { name: 'judge', isLive: (keys: unknown) => asked.push(keys) && [K1] },
      { name: 'no judge', isLive: () => [] },
      { name: 'last', live: () => [K1, K0] }
    )
    expect(await view.namesFor(K1)).toEqual(['all', 'judge', 'last'])
    expect(asked).toEqual([[K1]])
    expect(await viewOf().namesFor(K1)).toEqual([])
  })

  it('asks who judges only for what nobody calls live, and nobody for nothing', async () => {
    const asked: unknown[] = []
    const judge = (name: string, found: readonly BlobKey[]) => ({
      name,
      isLive: (keys: readonly BlobKey[]) => asked.push([name, keys]) && found
    })
    const view = viewOf({ name: 'app', live: () => [K0] }, judge('one', [K1]), judge('two', [K2]), judge('three', []))
    const answer = await view.ask()
    expect(await liveAmong(answer, [K0, K1, K2])).toEqual([K0, K1, K2])
    expect(asked).toEqual([
      ['one', [K1, K2]],
      ['two', [K2]]
    ])
    expect(await liveAmong(answer, [K0])).toEqual([K0])
    expect(await liveAmong(answer, [])).toEqual([])
    expect(asked).toHaveLength(2)
  })

  it('leaves no timer and no listener behind, whether the source answered or failed', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const { signal } = new AbortController()
    const view = (source: object) =>
      new LivenessView([{ name: 'app', ...source } as LivenessSource], 'blake3', [signal])
    await view({ live: () => [K0] }).ask()
    await rejection(view({ live: () => Promise.reject(new Error('away')) }).ask())
    expect([vi.getTimerCount(), getEventListeners(signal, 'abort').length]).toEqual([0, 0])
  })

  it('says how long it has waited for one that is silent, and which', async () => {
    vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout'] })
    onTestFinished(() => void vi.useRealTimers())
    const asking = rejection(viewOf({ name: 'slow', timeoutMs: 30, live: () => new Promise(() => {}) }).ask())
    await vi.advanceTimersByTimeAsync(30)
    const error = await asking
    expect(error).toMatchObject({ aborted: 'ProtectFailed', source: 'slow' })
    expect((error.cause as Error).message).toBe('no answer within 30 ms')
  })

  it.each([null, undefined, 7, 'text', {}, true])(
    'refuses %j for an answer, by name and with what is expected',
    async answer => {
      for (const question of [{ live: () => answer }, { live: async () => answer }]) {
        const error = await rejection(viewOf({ name: 'odd', ...question }).ask())
        expect(error).toBeInstanceOf(SweepStop)
        expect(error).toMatchObject({ aborted: 'ProtectFailed', source: 'odd' })
        expect(error.cause).toBeInstanceOf(InvalidArgumentError)
        expect((error.cause as Error).message).toMatch(/a liveness source.*an iterable of keys/)
      }
    }
  )

  it('reports what the source failed with, also where its iterator cannot be left, and where it is nothing', async () => {
    const cause = new Error('away')
    const iterator = { [Symbol.asyncIterator]: () => ({ next: () => Promise.reject(cause) }) }
    expect(await rejection(viewOf({ name: 'app', live: () => iterator }).ask())).toMatchObject({
      aborted: 'ProtectFailed',
      cause
    })
    const nothing = await rejection(viewOf({ name: 'app', live: () => Promise.reject(undefined) }).ask(async () => {}))
    expect([nothing instanceof SweepStop, nothing.cause]).toEqual([true, undefined])
  })
})

describe('keys that are loaded', () => {
  /** The lengths of the batches, with how many keys the source had given by then. */
  async function loaded(keys: readonly BlobKey[], isAsync: boolean) {
    const batches: [number, number][] = []
    let given = 0
    const source = {
      name: 'app',
      live: isAsync
        ? async function* () {
            for (const key of keys) {
              given++
              yield key
            }
          }
        : () => keys
    }
    const seen: Uint8Array[] = []
    const answer = await viewOf(source).ask(async digests => {
      batches.push([digests.length / DIGEST_LENGTH, given])
      seen.push(digests)
    })
    // Compared at once, because what differs among so many would take minutes to show.
    expect(Buffer.concat(seen).equals(Buffer.concat(keys.map(digestOf)))).toBe(true)
    expect(await liveAmong(answer, keys.slice(0, 1)), 'nothing is kept here').toEqual([])
    return batches
  }

  it('go in full batches and a rest, as they come where the source can wait', async () => {
    const keys = keysUpTo(2 * LIVE_BATCH + 1)
    expect(await loaded(keys, true)).toEqual([
      [LIVE_BATCH, LIVE_BATCH],
      [LIVE_BATCH, 2 * LIVE_BATCH],
      [1, keys.length]
    ])
    expect(await loaded(keys, false)).toEqual([LIVE_BATCH, LIVE_BATCH, 1].map(length => [length, 0]))
  })

  it('are never an empty batch', async () => {
    for (const isAsync of [true, false]) {
      expect((await loaded(keysUpTo(LIVE_BATCH), isAsync)).map(([length]) => length)).toEqual([LIVE_BATCH])
      expect(await loaded([], isAsync)).toEqual([])
    }
  })

  it('and cannot be stored are a failure of ours, never of the source', async () => {
    const cause = new Error('the server')
    for (const isAsync of [true, false]) {
      const keys = keysUpTo(LIVE_BATCH)
      const live = isAsync
        ? async function* () {
            yield* keys
          }
        : () => keys
      const asking = viewOf({ name: 'app', live }).ask(() => Promise.reject(cause))
      expect(await rejection(asking)).toBe(cause)
    }
  })
})
