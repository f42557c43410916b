import type { Catalog, RemoveOutcome } from '@alkblobs/core/engine'
import { classifyPostgres } from '@alkblobs/postgres-session'
import { expect, test } from 'vitest'
import {
  call,
  describeServer,
  digest,
  HOUR,
  inline,
  keyOf,
  leaseOf,
  locatorOf,
  OTHER,
  openPool,
  pinned,
  pinOf,
  sleep,
  staged,
  stageOf
} from './fixture.js'

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

describeServer('candidates', () => {
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
    const first = await catalog.candidates(lease, undefined, 3, call())
    expect(first).toEqual({
      scanned: 5,
      live: 1,
      alreadyStaged: 2,
      cancelled: [keyOf(2)],
      keys: [keyOf(4), keyOf(5)],
      next: keyOf(5)
    })
    const second = await catalog.candidates(lease, first.next, 3, call())
    expect(second).toEqual({
      scanned: 1,
      live: 0,
      alreadyStaged: 0,
      cancelled: [],
      keys: [keyOf(6)],
      next: undefined
    })
    expect(await sql('SELECT count(*)::int AS n FROM $.gc_window')).toEqual([{ n: 2 }])
  })

  test('are read through to the end', async () => {
    const { catalog, lease } = await swept(3, 0)
    expect((await catalog.candidates(lease, undefined, 10, call())).keys).toHaveLength(3)
  })
})

describeServer('staging', () => {
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

describeServer('due rows', () => {
  test('come oldest first, in pages, and cancelled ones at once', async () => {
    const { catalog, lease, sql } = await swept(5, 5, HOUR)
    expect((await catalog.due(lease, undefined, 9, call())).keys).toEqual([])
    await catalog.publish([inline(4)], call())
    expect((await catalog.due(lease, undefined, 9, call())).keys).toEqual([keyOf(4)])
    await sql("UPDATE $.gc_window SET staged_at = 'epoch'::timestamptz + interval '2 ms' WHERE key = $1", digest(1))
    await sql("UPDATE $.gc_window SET staged_at = 'epoch'::timestamptz + interval '1 ms' WHERE key = $1", digest(2))
    const first = await catalog.due(lease, undefined, 2, call())
    expect(first.keys).toEqual([keyOf(2), keyOf(1)])
    expect(await catalog.due(lease, first.next, 2, call())).toEqual({ keys: [keyOf(4)], next: undefined })
  })

  test('wait the longer of the delay then and the delay now', async () => {
    const { catalog, lease, sql } = await swept(1, 1, HOUR)
    const due = async () => (await catalog.due(lease, undefined, 9, call())).keys.length
    await sql('UPDATE $.meta SET window_delay_ms = 0')
    expect(await due()).toBe(0)
    await sql('UPDATE $.gc_window SET delay_ms = 0')
    expect(await due()).toBe(1)
    await sql('UPDATE $.meta SET window_delay_ms = $1', HOUR)
    expect(await due()).toBe(0)
  })

  test('are rows of sweeps, never delete marks', async () => {
    const { catalog, lease } = await swept(1, 0)
    await catalog.mark(keyOf(1), call())
    await sleep(2)
    expect((await catalog.due(lease, undefined, 9, call())).keys).toEqual([])
  })
})

describeServer('removing candidates', () => {
  test('takes entry, body, expired pins and row, and nothing twice', async () => {
    const { catalog, lease, sql } = await swept(2, 2)
    await catalog.pin([{ key: keyOf(1), pin: pinOf(), ttlMs: -1 }], call())
    await sql('UPDATE $.gc_window SET cancelled = false')
    const outcomes = await catalog.remove([candidate(1)], 0, lease, call())
    expect(outcomes).toEqual([
      { outcome: 'deleted', entry: { key: keyOf(1), length: 100, place: { tier: 'kv', length: 100 } } }
    ])
    expect(await catalog.read(keyOf(1), call())).toBeUndefined()
    const counts =
      'SELECT (SELECT count(*) FROM $.entries)::int AS b, (SELECT count(*) FROM $.gc_pins)::int AS p, (SELECT count(*) FROM $.gc_window)::int AS w'
    expect(await sql(counts)).toEqual([{ b: 1, p: 0, w: 1 }])
    expect(names(await catalog.remove([candidate(1)], 0, lease, call()))).toEqual(['cancelled'])
  })

  test.each(['publish', 'pin'])(
    'spares what a %s touched after the staging, pinned or not, and ends its row',
    async how => {
      const { catalog, lease, sql } = await swept(1, 1)
      if (how === 'publish') await catalog.publish([inline(1)], call())
      else await catalog.pin([{ key: keyOf(1), pin: pinOf(), ttlMs: -1 }], call())
      expect(names(await catalog.remove([candidate(1)], 0, lease, call()))).toEqual(['cancelled'])
      expect(await sql('SELECT * FROM $.gc_window')).toEqual([])
      expect(await catalog.read(keyOf(1), call())).toBeDefined()
    }
  )

  test('spares what is pinned by anybody or live, and ends its row', async () => {
    const { catalog, lease, sql } = await swept(2, 2)
    await sql("INSERT INTO $.gc_pins VALUES ($1, 'stranger', 1, now() + interval '1 hour')", digest(1))
    expect(names(await catalog.remove([candidate(1), candidate(2, true)], 0, lease, call()))).toEqual([
      'cancelled',
      'cancelled'
    ])
    expect(await sql('SELECT * FROM $.gc_window')).toEqual([])
    expect(await catalog.find([keyOf(1), keyOf(2)], call())).not.toContain(undefined)
  })

  test('whose entry is gone is a deletion without entry, unless the row was cancelled', async () => {
    const { catalog, lease, sql } = await swept(2, 2)
    await sql('DELETE FROM $.entries')
    await sql('UPDATE $.gc_window SET cancelled = true WHERE key = $1', digest(2))
    expect(await catalog.remove([candidate(1), candidate(2)], 0, lease, call())).toEqual([
      { outcome: 'deleted', entry: undefined },
      { outcome: 'cancelled' }
    ])
    expect(await sql('SELECT * FROM $.gc_window')).toEqual([])
  })

  test('moves the locator to trash after its delay', async () => {
    const { catalog, lease, sql } = await swept(0, 0)
    await catalog.stage([{ id: stageOf(1), ttlMs: HOUR }], call())
    await catalog.publish([staged(1)], call())
    await catalog.stageCandidates(lease, [keyOf(1)], call())
    expect(names(await catalog.remove([candidate(1)], HOUR, lease, call()))).toEqual(['deleted'])
    expect(await catalog.trash(undefined, 9, call())).toEqual([])
    await sql('UPDATE $.trash SET not_before = now()')
    expect(await catalog.trash(undefined, 9, call())).toEqual([
      { what: locatorOf(1), key: keyOf(1), length: 1_000_000, attempts: 0 }
    ])
  })

  test('needs a lease that is held', async () => {
    const { catalog, lease } = await swept(1, 1)
    const withoutLease = await catalog.remove([candidate(1)], 0, undefined, call()).catch(error => error)
    await lease.release()
    const released = await catalog.remove([candidate(1)], 0, lease, call()).catch(error => error)
    expect([withoutLease, released].map(error => [classifyPostgres(error), error.message])).toEqual([
      ['conflict', 'lease lost'],
      ['conflict', 'lease lost']
    ])
    expect(await catalog.read(keyOf(1), call())).toBeDefined()
  })
})

describeServer('a direct delete', () => {
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
    expect(await sql('SELECT mark, cancelled FROM $.gc_window')).toEqual([{ mark: '', cancelled: false }])
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
    expect(await sql('SELECT * FROM $.gc_window')).toEqual([])
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
    await sql("DELETE FROM $.gc_window WHERE mark <> ''")
    expect(names(await catalog.remove([item], 0, undefined, call()))).toEqual(['cancelled'])
  })
})

describeServer('maintenance', () => {
  test('ends expired pins, trashes expired stages and ends old marks, and nothing else', async () => {
    const { catalog, lease, sql } = await swept(3, 1)
    await catalog.mark(keyOf(2), call())
    await catalog.mark(keyOf(3), call())
    await sql("UPDATE $.gc_window SET staged_at = 'epoch' WHERE key = $1 OR mark = ''", digest(2))
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
    expect(await sql('SELECT owner FROM $.gc_pins')).toEqual([{ owner: 'owner-a' }])
    expect(await catalog.staged([stageOf(1)], call())).toEqual([true])
    expect((await catalog.trash(undefined, 9, call())).map(({ what }) => what)).toEqual([stageOf(2)])
    expect(await sql("SELECT mark = '' AS sweep FROM $.gc_window ORDER BY 1")).toEqual([
      { sweep: false },
      { sweep: true }
    ])
    expect(await catalog.maintain(lease, call())).toEqual({ pinsReaped: 0, stagesTrashed: 0 })
  })

  // A machine that resumes with a wrong clock, corrected a moment later.
  test('what was written while the clock was ahead does not wait out the error', async () => {
    const { catalog, lease, sql } = await swept(3, 1)
    const ahead = "now() + interval '10 years'"
    await catalog.pin([{ key: keyOf(2), pin: pinOf(), ttlMs: HOUR }], call())
    await catalog.stage([{ id: stageOf(1), ttlMs: HOUR }], call())
    await sql(`UPDATE $.gc_pins SET expires_at = ${ahead}`)
    await sql(`UPDATE $.stages SET expires_at = ${ahead}`)
    await sql(`UPDATE $.gc_window SET staged_at = ${ahead}`)
    await catalog.maintain(lease, call())
    const month = "now() + interval '30 days'"
    expect(await sql(`SELECT key FROM $.gc_pins WHERE expires_at > ${month}`)).toEqual([])
    expect(await sql(`SELECT id FROM $.stages WHERE expires_at > ${month}`)).toEqual([])
    expect((await catalog.due(lease, undefined, 9, call())).keys).toHaveLength(1)
  })
})
