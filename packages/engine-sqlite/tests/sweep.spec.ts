import type { BlobKey, Catalog, Lease, Owner, RemoveOutcome } from '@alkblobs/core/engine'
import { describe, expect, test } from 'vitest'
import {
  call,
  HOUR,
  inline,
  keyOf,
  locatorOf,
  OTHER,
  OWNER,
  openPool,
  pinned,
  pinOf,
  sleep,
  staged,
  stageOf
} from './fixture.js'

async function leaseOf(catalog: Catalog): Promise<Lease> {
  const lease = await catalog.lease(call())
  if (!lease) throw new Error('no lease')
  return lease
}

/** A pool with entries 1 to `count`, the first `stagedCount` of them staged. */
async function swept(count: number, stagedCount: number, windowDelayMs = 0) {
  const pool = await openPool({ windowDelayMs })
  await pool.catalog.publish(
    Array.from({ length: count }, (_, n) => inline(n + 1)),
    call()
  )
  const lease = await leaseOf(pool.catalog)
  await pool.catalog.stageCandidates(
    lease,
    Array.from({ length: stagedCount }, (_, n) => keyOf(n + 1)),
    call()
  )
  return { ...pool, lease }
}

const candidate = (n: number, live = false) => ({ kind: 'candidate', key: keyOf(n), live }) as const
const names = (outcomes: readonly RemoveOutcome[]) => outcomes.map(({ outcome }) => outcome)

describe('candidates', () => {
  test('are paged in key order with exact counts, and nothing changes', async () => {
    const { catalog, lease, sql } = await swept(6, 2)
    await catalog.pin(
      [
        { key: keyOf(3), pin: pinOf(), ttlMs: HOUR },
        { key: keyOf(4), pin: pinOf(), ttlMs: -1 }
      ],
      call()
    )
    await catalog.publish([inline(2)], call())
    const first = await catalog.candidates(lease, undefined, 4, call())
    expect(first).toEqual({
      scanned: 4,
      live: 1,
      alreadyStaged: 2,
      cancelled: [keyOf(2)],
      keys: [keyOf(4)],
      next: keyOf(4)
    })
    const second = await catalog.candidates(lease, first.next, 4, call())
    expect(second).toEqual({
      scanned: 2,
      live: 0,
      alreadyStaged: 0,
      cancelled: [],
      keys: [keyOf(5), keyOf(6)],
      next: undefined
    })
    expect(sql('SELECT count(*) AS n FROM gc_window')).toEqual([{ n: 2 }])
  })

  test('are told apart wherever they lie in a page, and by any of their pins', async () => {
    const { catalog, lease } = await swept(5, 2)
    const pin = (n: number, owner: Owner, ttlMs: number) => ({ key: keyOf(n), pin: pinOf(1, owner), ttlMs })
    const pins = [pin(3, OWNER, HOUR), pin(3, OTHER, -1), pin(4, OWNER, -1), pin(4, OTHER, -2), pin(2, OWNER, HOUR)]
    await catalog.pin(pins, call())
    for (const limit of [1, 2, 3, 5]) {
      const found = { live: 0, alreadyStaged: 0, cancelled: [] as BlobKey[], keys: [] as BlobKey[] }
      for (let after: string | undefined, more = true; more; more = after !== undefined) {
        const page = await catalog.candidates(lease, after, limit, call())
        found.live += page.live
        found.alreadyStaged += page.alreadyStaged
        found.cancelled.push(...page.cancelled)
        found.keys.push(...page.keys)
        after = page.next
      }
      expect(found, `pages of ${limit}`).toEqual({
        live: 2,
        alreadyStaged: 1,
        cancelled: [],
        keys: [keyOf(4), keyOf(5)]
      })
    }
  })

  test('are read without touching bodies', async () => {
    const { catalog, lease, sql } = await swept(3, 0)
    sql('DROP TABLE bodies')
    expect((await catalog.candidates(lease, undefined, 10, call())).keys).toHaveLength(3)
  })

  test('are told apart from rows of entries that are gone, without a walk through those', async () => {
    const { catalog, lease, sql } = await swept(4, 2)
    const last = 0xffff_ffff
    await catalog.publish([inline(2), inline(last)], call())
    sql(`
      WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 100000)
      INSERT INTO gc_window (key, mark, staged_at, delay_ms) SELECT randomblob(32), '', 0, 0 FROM n`)
    const walk = () => sql("SELECT lower(hex(key)), cancelled FROM gc_window WHERE mark = ''")
    const timeOf = async (look: () => unknown) => {
      const begun = performance.now()
      await look()
      return performance.now() - begun
    }
    const times: [number, number][] = []
    for (let i = 0; i < 3; i++) {
      times.push([
        await timeOf(async () => {
          const page = await catalog.candidates(lease, undefined, 100, call())
          expect(page).toMatchObject({ scanned: 5, live: 0, alreadyStaged: 2, cancelled: [keyOf(2)], next: undefined })
          expect([...page.keys].sort()).toEqual([keyOf(3), keyOf(4), keyOf(last)])
        }),
        await timeOf(walk)
      ])
    }
    expect(Math.min(...times.map(([page]) => page))).toBeLessThan(Math.min(...times.map(([, all]) => all)) / 2)
  })
})

describe('staging', () => {
  test('takes keys with an entry, without row and unexpired pin, each once', async () => {
    const { catalog, lease } = await swept(3, 1)
    await catalog.pin(
      [
        { key: keyOf(2), pin: pinOf(), ttlMs: HOUR },
        { key: keyOf(3), pin: pinOf(), ttlMs: -1 }
      ],
      call()
    )
    expect(await catalog.stageCandidates(lease, [1, 2, 3, 4].map(keyOf), call())).toEqual([keyOf(3)])
    expect(await catalog.stageCandidates(lease, [keyOf(3)], call())).toEqual([])
  })

  test('of a key under a direct delete writes a row of its own', async () => {
    const { catalog, lease } = await swept(1, 0)
    await catalog.mark(keyOf(1), call())
    expect(await catalog.stageCandidates(lease, [keyOf(1)], call())).toEqual([keyOf(1)])
  })
})

describe('due rows', () => {
  test('come oldest first, in pages, and cancelled ones at once', async () => {
    const { catalog, lease, sql } = await swept(5, 5, HOUR)
    expect((await catalog.due(lease, undefined, 9, call())).keys).toEqual([])
    await catalog.publish([inline(4)], call())
    expect((await catalog.due(lease, undefined, 9, call())).keys).toEqual([keyOf(4)])
    sql('UPDATE gc_window SET staged_at = ? WHERE hex(key) LIKE ?', 2, '00000001%')
    sql('UPDATE gc_window SET staged_at = ? WHERE hex(key) LIKE ?', 1, '00000002%')
    const first = await catalog.due(lease, undefined, 2, call())
    expect(first.keys).toEqual([keyOf(2), keyOf(1)])
    expect(await catalog.due(lease, first.next, 2, call())).toEqual({ keys: [keyOf(4)], next: undefined })
  })

  test('wait the longer of the delay then and the delay now', async () => {
    const { catalog, lease, sql } = await swept(1, 1, HOUR)
    const due = async () => (await catalog.due(lease, undefined, 9, call())).keys.length
    sql('UPDATE meta SET window_delay_ms = 0')
    expect(await due()).toBe(0)
    sql('UPDATE gc_window SET delay_ms = 0')
    expect(await due()).toBe(1)
    sql('UPDATE meta SET window_delay_ms = ?', HOUR)
    expect(await due()).toBe(0)
  })

  test('are rows of sweeps, never delete marks', async () => {
    const { catalog, lease } = await swept(1, 0)
    await catalog.mark(keyOf(1), call())
    await sleep(2)
    expect((await catalog.due(lease, undefined, 9, call())).keys).toEqual([])
  })
})

describe('removing candidates', () => {
  test('takes entry, body, expired pins and row, and nothing twice', async () => {
    const { catalog, lease, sql } = await swept(2, 2)
    await catalog.pin([{ key: keyOf(1), pin: pinOf(), ttlMs: -1 }], call())
    sql('UPDATE gc_window SET cancelled = 0')
    const outcomes = await catalog.remove([candidate(1)], 0, lease, call())
    expect(outcomes).toEqual([
      { outcome: 'deleted', entry: { key: keyOf(1), length: 100, place: { tier: 'kv', length: 100 } } }
    ])
    expect(await catalog.read(keyOf(1), call())).toBeUndefined()
    const counts =
      'SELECT (SELECT count(*) FROM bodies) AS b, (SELECT count(*) FROM gc_pins) AS p, (SELECT count(*) FROM gc_window) AS w'
    expect(sql(counts)).toEqual([{ b: 1, p: 0, w: 1 }])
    expect(names(await catalog.remove([candidate(1)], 0, lease, call()))).toEqual(['cancelled'])
  })

  test.each(['publish', 'pin'])(
    'spares what a %s touched after the staging, pinned or not, and ends its row',
    async how => {
      const { catalog, lease, sql } = await swept(1, 1)
      if (how === 'publish') await catalog.publish([inline(1)], call())
      else await catalog.pin([{ key: keyOf(1), pin: pinOf(), ttlMs: -1 }], call())
      expect(names(await catalog.remove([candidate(1)], 0, lease, call()))).toEqual(['cancelled'])
      expect(sql('SELECT * FROM gc_window')).toEqual([])
      expect(await catalog.read(keyOf(1), call())).toBeDefined()
    }
  )

  test('spares what is pinned by anybody or live, and ends its row', async () => {
    const { catalog, lease, sql } = await swept(2, 2)
    sql(
      "INSERT INTO gc_pins SELECT key, 'stranger', 1, ? FROM entries WHERE hex(key) LIKE ?",
      Date.now() + HOUR,
      '00000001%'
    )
    expect(names(await catalog.remove([candidate(1), candidate(2, true)], 0, lease, call()))).toEqual([
      'cancelled',
      'cancelled'
    ])
    expect(sql('SELECT * FROM gc_window')).toEqual([])
    expect(await catalog.find([keyOf(1), keyOf(2)], call())).not.toContain(undefined)
  })

  test('whose entry is gone is a deletion without entry, unless the row was cancelled', async () => {
    const { catalog, lease, sql } = await swept(2, 2)
    sql('DELETE FROM entries')
    sql('UPDATE gc_window SET cancelled = 1 WHERE hex(key) LIKE ?', '00000002%')
    expect(await catalog.remove([candidate(1), candidate(2)], 0, lease, call())).toEqual([
      { outcome: 'deleted', entry: undefined },
      { outcome: 'cancelled' }
    ])
    expect(sql('SELECT * FROM gc_window')).toEqual([])
  })

  test('moves the locator to trash after its delay', async () => {
    const { catalog, lease, sql } = await swept(0, 0)
    await catalog.stage([{ id: stageOf(1), ttlMs: HOUR }], call())
    await catalog.publish([staged(1)], call())
    await catalog.stageCandidates(lease, [keyOf(1)], call())
    expect(names(await catalog.remove([candidate(1)], HOUR, lease, call()))).toEqual(['deleted'])
    expect(await catalog.trash(undefined, 9, call())).toEqual([])
    sql('UPDATE trash SET not_before = 0')
    expect(await catalog.trash(undefined, 9, call())).toEqual([
      { what: locatorOf(1), key: keyOf(1), length: 1_000_000, attempts: 0 }
    ])
  })

  test('needs a lease that is held', async () => {
    const { catalog, lease, engine } = await swept(1, 1)
    const withoutLease = await catalog.remove([candidate(1)], 0, undefined, call()).catch(error => error)
    await lease.release()
    const released = await catalog.remove([candidate(1)], 0, lease, call()).catch(error => error)
    expect([withoutLease, released].map(error => [engine.classify(error), error.message])).toEqual([
      ['conflict', 'lease lost'],
      ['conflict', 'lease lost']
    ])
    expect(await catalog.read(keyOf(1), call())).toBeDefined()
  })
})

describe('a direct delete', () => {
  const marked = async (catalog: Catalog, n: number) => {
    const answer = await catalog.mark(keyOf(n), call())
    if (typeof answer === 'string') throw new Error(answer)
    return { kind: 'marked', key: keyOf(n), mark: answer.mark, live: false } as const
  }

  test('is refused under a pin of anybody, and absent without an entry', async () => {
    const { catalog } = await openPool()
    await catalog.publish([inline(1, undefined, pinned(HOUR, pinOf(1, OTHER)))], call())
    expect(await catalog.mark(keyOf(1), call())).toBe('pinned')
    expect(await catalog.mark(keyOf(2), call())).toBe('absent')
  })

  test('takes the entry and its mark, and leaves the row of a sweep', async () => {
    const { catalog, sql } = await swept(1, 1)
    const item = await marked(catalog, 1)
    expect(names(await catalog.remove([item], 0, undefined, call()))).toEqual(['deleted'])
    expect(sql('SELECT mark, cancelled FROM gc_window')).toEqual([{ mark: '', cancelled: 0 }])
  })

  test('is told by exactly one of two', async () => {
    const { catalog } = await swept(1, 0)
    const items = [await marked(catalog, 1), await marked(catalog, 1)]
    const outcomes = await Promise.all(items.map(item => catalog.remove([item], 0, undefined, call())))
    expect(outcomes.map(([one]) => one?.outcome)).toEqual(['deleted', 'absent'])
  })

  test('is cancelled by a put or pin after the mark, whatever else came and went', async () => {
    const { catalog, sql } = await swept(2, 0)
    const items = [await marked(catalog, 1), await marked(catalog, 2)]
    await catalog.publish([inline(1)], call())
    await catalog.pin([{ key: keyOf(2), pin: pinOf(), ttlMs: -1 }], call())
    expect(names(await catalog.remove(items, 0, undefined, call()))).toEqual(['cancelled', 'cancelled'])
    expect(sql('SELECT * FROM gc_window')).toEqual([])
  })

  test('of an entry named by place acts only if it still lies there', async () => {
    const { catalog } = await swept(2, 0)
    const [one, two] = [await marked(catalog, 1), await marked(catalog, 2)]
    const items = [
      { ...one, at: { tier: 'kv', length: 7 } as const },
      { ...two, at: { tier: 'kv', length: 100 } as const }
    ]
    expect(names(await catalog.remove(items, 0, undefined, call()))).toEqual(['absent', 'deleted'])
  })

  test('without its mark removes nothing', async () => {
    const { catalog, sql } = await swept(1, 1)
    const item = await marked(catalog, 1)
    sql("DELETE FROM gc_window WHERE mark <> ''")
    expect(names(await catalog.remove([item], 0, undefined, call()))).toEqual(['cancelled'])
  })
})

describe('maintenance', () => {
  test('ends expired pins, trashes expired stages and ends old marks, and nothing else', async () => {
    const { catalog, lease, sql } = await swept(3, 1)
    await catalog.mark(keyOf(2), call())
    await catalog.mark(keyOf(3), call())
    sql('UPDATE gc_window SET staged_at = 0 WHERE hex(key) LIKE ? OR mark = ?', '00000002%', '')
    await catalog.pin(
      [
        { key: keyOf(1), pin: pinOf(), ttlMs: HOUR },
        { key: keyOf(1), pin: pinOf(1, OTHER), ttlMs: -1 }
      ],
      call()
    )
    await catalog.stage(
      [
        { id: stageOf(1), ttlMs: HOUR },
        { id: stageOf(2), ttlMs: -1 }
      ],
      call()
    )
    expect(await catalog.maintain(lease, call())).toEqual({ pinsReaped: 1, stagesTrashed: 1 })
    expect(sql('SELECT owner FROM gc_pins')).toEqual([{ owner: 'owner-a' }])
    expect(await catalog.staged([stageOf(1)], call())).toEqual([true])
    expect((await catalog.trash(undefined, 9, call())).map(({ what }) => what)).toEqual([stageOf(2)])
    expect(sql("SELECT mark = '' AS sweep FROM gc_window ORDER BY 1")).toEqual([{ sweep: 0 }, { sweep: 1 }])
    expect(await catalog.maintain(lease, call())).toEqual({ pinsReaped: 0, stagesTrashed: 0 })
  })

  // A machine that resumes with a wrong clock, corrected a moment later.
  test('what was written while the clock was ahead does not wait out the error', async () => {
    const { catalog, lease, sql } = await swept(3, 1)
    const ahead = Date.now() + 10 * 365 * 24 * HOUR
    await catalog.pin([{ key: keyOf(2), pin: pinOf(), ttlMs: HOUR }], call())
    await catalog.stage([{ id: stageOf(1), ttlMs: HOUR }], call())
    sql('UPDATE gc_pins SET expires_at = ?', ahead)
    sql('UPDATE stages SET expires_at = ?', ahead)
    sql('UPDATE gc_window SET staged_at = ?', ahead)
    await catalog.maintain(lease, call())
    const month = Date.now() + 30 * 24 * HOUR
    expect(sql('SELECT key FROM gc_pins WHERE expires_at > ?', month)).toEqual([])
    expect(sql('SELECT id FROM stages WHERE expires_at > ?', month)).toEqual([])
    expect((await catalog.due(lease, undefined, 9, call())).keys).toHaveLength(1)
  })
})
