import type { BlobKey, Call, CandidatePage } from '@alkblobs/core/engine'
import type { Session } from '@alkblobs/postgres-session'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { PagesAhead } from '../src/catalog/ahead.js'
import { LiveKeys } from '../src/catalog/live.js'
import { call, describeServer, keyOf, leaseOf, openPool } from './fixture.js'

const page = (next: string | undefined): CandidatePage => ({
  scanned: 0,
  live: 0,
  alreadyStaged: 0,
  cancelled: [],
  keys: [],
  next
})

describe('pages that were looked at ahead', () => {
  afterEach(() => {
    vi.restoreAllMocks()
  })

  test('are each for their cursor and limit, once, in their order', () => {
    const ahead = new PagesAhead()
    const pages = [page('a'), page('b'), page('c')]
    expect(ahead.keep(pages, 1_000)).toBe(pages[0])
    expect(ahead.take(undefined, 1_000)).toBeUndefined()
    expect(ahead.take('a', 999)).toBeUndefined()
    expect(ahead.take('b', 1_000)).toBeUndefined()
    expect(ahead.take('a', 1_000)).toBe(pages[1])
    expect(ahead.take('a', 1_000)).toBeUndefined()
    expect(ahead.take('b', 1_000)).toBe(pages[2])
    expect(ahead.take('c', 1_000)).toBeUndefined()
  })

  test('are of no use after a second', () => {
    const ahead = new PagesAhead()
    const clock = vi.spyOn(performance, 'now').mockReturnValue(0)
    ahead.keep([page('a'), page('b'), page('c')], 1_000)
    clock.mockReturnValue(1_000)
    expect(ahead.take('a', 1_000)).toBeDefined()
    clock.mockReturnValue(1_001)
    expect(ahead.take('b', 1_000)).toBeUndefined()
  })
})

describe('live keys', () => {
  test('that could not be copied are not forgotten: whoever goes on fails again, until they are', async () => {
    let isBroken = true
    let copied = 0
    const session = {
      run: async () => 0,
      copyIn: async (_: string, [bytes]: readonly Uint8Array[]) => {
        if (isBroken) throw new Error('no line')
        copied += ((bytes as Uint8Array).length - 21) / 38
      }
    } as unknown as Session
    const live = new LiveKeys({ say: <T>(_: Call, work: (session: Session) => Promise<T>) => work(session) })
    const keys: BlobKey[] = Array.from({ length: 1_000 }, (_, n) => keyOf(n))
    await live.add(keys, call())
    expect(live.isFilled).toBe(true)
    await expect(live.prepare(call())).rejects.toThrow('no line')
    await expect(live.prepare(call())).rejects.toThrow('no line')
    isBroken = false
    await live.add(keys.slice(0, 10), call())
    await live.prepare(call())
    expect(copied).toBe(1_010)
  })
})

describeServer('a sweep of more entries than are looked at together', () => {
  test('looks at each once, in pages of the limit', { timeout: 60_000 }, async () => {
    const { catalog, sql } = await openPool()
    await sql(`INSERT INTO $.entries (key, length, body)
      SELECT sha256(int8send(g)), 1, '\\x00' FROM generate_series(1, 9500) AS g`)
    const lease = await leaseOf(catalog)
    const all = await sql<{ hex: string }>("SELECT encode(key, 'hex') AS hex FROM $.entries ORDER BY key")
    const seen: string[] = []
    const lengths: number[] = []
    let after: string | undefined
    do {
      const found: CandidatePage = await catalog.candidates(lease, after, 1_000, call())
      lengths.push(found.scanned)
      seen.push(...found.keys)
      after = found.next
    } while (after !== undefined)
    expect(lengths).toEqual([...Array.from({ length: 9 }, () => 1_000), 500])
    expect(seen.join() === all.map(({ hex }) => `blake3:${hex}`).join()).toBe(true)
    await lease.release()
  })
})
