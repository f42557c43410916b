import { randomBytes } from 'node:crypto'
import type { Removal, RemoveOutcome } from '@alkblobs/core/engine'
import { expect, test } from 'vitest'
import {
  byKey,
  call,
  describeServer,
  digest,
  failure,
  HOUR,
  inline,
  keyOf,
  leaseOf,
  openPool,
  pinned,
  pinOf,
  staged,
  stageOf,
  stranger
} from './fixture.js'

const names = (outcomes: readonly RemoveOutcome[]) => outcomes.map(({ outcome }) => outcome)
const candidate = (n: number): Removal => ({ kind: 'candidate', key: keyOf(n), live: false })
const upTo = (count: number) => Array.from({ length: count }, (_, i) => i + 1)

async function swept(count: number) {
  const pool = await openPool()
  await pool.catalog.publish(
    upTo(count).map(n => inline(n)),
    call()
  )
  const lease = await leaseOf(pool.catalog)
  await pool.catalog.stageCandidates(lease, upTo(count).map(keyOf), call())
  return { ...pool, lease }
}

/** What gets in each other's way gets on in the end, however slow the machine is; nobody is to hear of it. */
const PATIENT = { poolMax: 8, lockTimeoutMs: 20_000 } as const

describeServer('many writers', () => {
  test('of one content at once: all succeed, one makes the entry', async () => {
    const pools = [await openPool(PATIENT)]
    pools.push(await openPool({ at: pools[0]?.at as never, ...PATIENT }))
    const body = randomBytes(5_000)
    const puts = Array.from({ length: 64 }, (_, i) => {
      const item = inline(1, body, pinned(HOUR, pinOf(i + 1, `owner-${i % 2}` as never)))
      return pools[i % 2]?.catalog.publish([item], call(25_000))
    })
    const outcomes = (await Promise.all(puts)).map(answer => answer?.[0]?.outcome)
    expect(outcomes.filter(outcome => outcome === 'created')).toHaveLength(1)
    expect(outcomes.filter(outcome => outcome === 'existed')).toHaveLength(63)
    const [pool] = pools
    expect(await pool?.sql('SELECT owner, generation::int FROM $.gc_pins ORDER BY owner')).toEqual([
      { owner: 'owner-0', generation: 63 },
      { owner: 'owner-1', generation: 64 }
    ])
  })

  test('of the same fifty keys in different orders: nobody sees a deadlock or a duplicate', async () => {
    const one = await openPool(PATIENT)
    const pools = [one, await openPool({ at: one.at, ...PATIENT }), await openPool({ at: one.at, ...PATIENT })]
    const keys = upTo(50)
    const shuffled = () => [...keys].sort(() => Math.random() - 0.5)
    const work = Array.from({ length: 48 }, (_, i) => {
      const { catalog } = pools[i % 3] as typeof one
      const pin = pinned(HOUR, pinOf(i + 1, `owner-${i % 5}` as never))
      if (i % 4 === 3) {
        const items = shuffled().map(n => ({ key: keyOf(n), pin: pin.pin.row, ttlMs: HOUR }))
        return catalog.pin(items, call(25_000))
      }
      return catalog.publish(
        shuffled().map(n => inline(n, Buffer.alloc(300, n), pin)),
        call(25_000)
      )
    })
    const outcomes = (await Promise.all(work)).flat()
    expect(outcomes.filter(one => one && 'outcome' in one && one.outcome === 'created')).toHaveLength(50)
    expect(await one.sql('SELECT count(*)::int AS n FROM $.entries')).toEqual([{ n: 50 }])
  })

  test('and renewals, releases and removals beside them add up, and nobody is told of a lock', async () => {
    const one = await openPool(PATIENT)
    const two = await openPool({ at: one.at, ...PATIENT })
    let [created, deleted] = [0, 0]
    const writer = async ({ catalog }: typeof one, owner: string) => {
      for (let i = 1; i <= 60; i++) {
        const n = 1 + Math.floor(Math.random() * 20)
        const row = pinOf(i, owner as never)
        const [made] = await catalog.publish([inline(n, randomBytes(2_000), pinned(HOUR, row))], call())
        if (made?.outcome === 'created') created++
        const pins = [{ key: keyOf(n), pin: row }]
        await catalog.renew({ pins, pinTtlMs: HOUR, stages: [], stageTtlMs: 1, revive: i % 2 === 0 }, call())
        expect((await catalog.find([keyOf(n)], call()))[0]).toBeDefined()
        await catalog.release(pins, call())
        const marked = await catalog.mark(keyOf(n), call())
        if (typeof marked === 'string') continue
        const [removed] = await catalog.remove(
          [{ kind: 'marked', key: keyOf(n), mark: marked.mark, live: false }],
          0,
          undefined,
          call()
        )
        if (removed?.outcome === 'deleted') deleted++
      }
    }
    const lease = await leaseOf(two.catalog)
    let isOver = false
    const sweeper = async () => {
      while (!isOver) {
        const { keys } = await two.catalog.due(lease, undefined, 100, call())
        const outcomes =
          keys.length === 0
            ? []
            : await two.catalog.remove(
                keys.map(key => ({ kind: 'candidate', key, live: false })),
                0,
                lease,
                call()
              )
        deleted += outcomes.filter(one => one.outcome === 'deleted' && one.entry !== undefined).length
        const page = await two.catalog.candidates(lease, undefined, 100, call())
        if (page.keys.length > 0) await two.catalog.stageCandidates(lease, page.keys, call())
        await two.catalog.maintain(lease, call())
      }
    }
    const sweeping = sweeper()
    await Promise.all(['a', 'b', 'c', 'd'].map((owner, i) => writer(i % 2 === 0 ? one : two, owner)))
    isOver = true
    await sweeping
    const left =
      'SELECT (SELECT count(*)::int FROM $.entries) AS entries, (SELECT count(*)::int FROM $.gc_pins) AS pins'
    expect(await one.sql(left)).toEqual([{ entries: created - deleted, pins: 0 }])
  })
})

describeServer('a pin that no lock kept out', () => {
  test('refuses the removal of its own key alone', async () => {
    const { catalog, lease, sql } = await swept(5)
    await sql(`CREATE FUNCTION $.refuse() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN RAISE EXCEPTION ''pinned'' USING ERRCODE = ''23503''; END'`)
    await sql(`CREATE TRIGGER refuse BEFORE DELETE ON $.entries FOR EACH ROW
      WHEN (old.key = '\\x${digest(3).toString('hex')}') EXECUTE FUNCTION $.refuse()`)
    const outcomes = names(await catalog.remove(upTo(5).map(candidate), 0, lease, call()))
    expect(outcomes).toEqual(['deleted', 'deleted', 'busy', 'deleted', 'deleted'])
    expect((await catalog.due(lease, undefined, 9, call())).keys).toEqual([keyOf(3)])
  })
})

describeServer('a transaction of somebody else that is open', () => {
  test('with a new pin spares that key alone: it is busy, and cancelled once the pin is there', async () => {
    const { at, catalog, lease, sql } = await swept(300)
    const other = await stranger(at)
    await other.begin()
    await other.say("INSERT INTO $.gc_pins VALUES ($1::bytea, 'stranger', 1, now() + interval '1 hour')", [digest(150)])
    const outcomes: RemoveOutcome[] = []
    for (let i = 0; i < 300; i += 100) {
      const batch = upTo(300).slice(i, i + 100)
      outcomes.push(...(await catalog.remove(batch.map(candidate), 0, lease, call())))
    }
    expect(names(outcomes).filter(outcome => outcome === 'deleted')).toHaveLength(299)
    expect(outcomes[149]).toEqual({ outcome: 'busy' })
    await other.commit()
    expect(names(await catalog.remove([candidate(150)], 0, lease, call()))).toEqual(['cancelled'])
    expect(await sql('SELECT count(*)::int AS n FROM $.entries')).toEqual([{ n: 1 }])
  })

  test('that renews an expired pin makes the key count as pinned', async () => {
    const { at, catalog, lease, sql } = await swept(2)
    await sql("INSERT INTO $.gc_pins VALUES ($1, 'stranger', 1, now() - interval '1 hour')", digest(1))
    const other = await stranger(at)
    await other.begin()
    await other.say("UPDATE $.gc_pins SET expires_at = now() + interval '1 hour'")
    expect(names(await catalog.remove([1, 2].map(candidate), 0, lease, call()))).toEqual(['cancelled', 'deleted'])
    await other.commit()
  })

  test('that holds a row of the window whose entry is gone leaves it due', async () => {
    const { at, catalog, lease, sql } = await swept(2)
    await sql('DELETE FROM $.entries')
    const other = await stranger(at)
    await other.begin()
    await other.say('UPDATE $.gc_window SET cancelled = true WHERE key = $1::bytea', [digest(1)])
    expect(names(await catalog.remove([1, 2].map(candidate), 0, lease, call()))).toEqual(['busy', 'deleted'])
    await other.commit()
    expect(names(await catalog.remove([candidate(1)], 0, lease, call()))).toEqual(['cancelled'])
  })

  test('with a pin keeps the key from being staged', async () => {
    const { at, catalog } = await openPool()
    await catalog.publish([inline(1), inline(2)], call())
    const lease = await leaseOf(catalog)
    const other = await stranger(at)
    await other.begin()
    await other.say("INSERT INTO $.gc_pins VALUES ($1::bytea, 'stranger', 1, now() - interval '1 hour')", [digest(1)])
    expect(await catalog.stageCandidates(lease, [1, 2].map(keyOf), call())).toEqual([keyOf(2)])
  })

  test('that makes the same entry is waited for by that put alone; the others do not wait', async () => {
    const { at, catalog } = await openPool({ lockTimeoutMs: 20_000 })
    const other = await stranger(at)
    await other.begin()
    await other.say("INSERT INTO $.entries (key, length, body) VALUES ($1::bytea, 1, 'x')", [digest(2)])
    let isDone = false
    const waiting = catalog.publish([inline(2)], call(20_000)).then(([one]) => {
      isDone = true
      return one?.outcome
    })
    // Nobody lets go of the entry before these are there, so one that waited for it would not come back.
    const quick = await Promise.all([1, 3, 4].map(n => catalog.publish([inline(n)], call())))
    expect(quick.flat().map(({ outcome }) => outcome)).toEqual(['created', 'created', 'created'])
    expect(isDone).toBe(false)
    await other.commit()
    expect(await waiting).toBe('existed')
  })

  test('that rolls back what it was making leaves the key to who waited', async () => {
    const { at, catalog } = await openPool({ lockTimeoutMs: 10_000 })
    const other = await stranger(at)
    await other.begin()
    await other.say("INSERT INTO $.entries (key, length, body) VALUES ($1::bytea, 1, 'x')", [digest(1)])
    const waiting = catalog.publish([inline(1)], call())
    await other.blocks()
    await other.rollback()
    expect((await waiting)[0]?.outcome).toBe('created')
  })

  test('that removes an entry is waited for: a put makes it anew, a put by key finds it absent', async () => {
    const { at, catalog } = await openPool({ lockTimeoutMs: 10_000 })
    await catalog.publish([inline(1), inline(2), inline(3)], call())
    const other = await stranger(at)
    await other.begin()
    await other.say('DELETE FROM $.entries')
    const pin = { key: keyOf(3), pin: pinOf(), ttlMs: HOUR }
    const waiting = [
      catalog.publish([inline(1, undefined, pinned())], call()),
      catalog.publish([byKey(2, pinned())], call()),
      catalog.pin([pin], call())
    ] as const
    await other.blocks()
    await other.commit()
    const [made, byKeyAlone, pinOnly] = await Promise.all(waiting)
    expect([made[0]?.outcome, byKeyAlone[0]?.outcome, pinOnly[0]]).toEqual(['created', 'absent', undefined])
  })

  test('that keeps an entry locked for longer than a call may wait is a conflict', async () => {
    const { at, catalog } = await openPool({ lockTimeoutMs: 300 })
    await catalog.publish([inline(1)], call())
    const other = await stranger(at)
    await other.begin()
    await other.say('SELECT 1 FROM $.entries FOR UPDATE')
    expect(await failure(catalog.publish([inline(1)], call()))).toBe('conflict')
    expect(await failure(catalog.mark(keyOf(1), call()))).toBe('conflict')
    expect((await catalog.find([keyOf(1)], call()))[0]?.key).toBe(keyOf(1))
    await other.rollback()
    expect((await catalog.publish([inline(1)], call()))[0]?.outcome).toBe('existed')
  })

  test('that locks a pin keeps a renewal from waiting for it, and it is not lost', async () => {
    const { at, catalog } = await openPool()
    await catalog.publish([inline(1, undefined, pinned()), inline(2, undefined, pinned())], call())
    const other = await stranger(at)
    await other.begin()
    await other.say('SELECT 1 FROM $.gc_pins WHERE key = $1::bytea FOR UPDATE', [digest(1)])
    const pins = [1, 2].map(n => ({ key: keyOf(n), pin: pinOf() }))
    const request = { pins, pinTtlMs: 5 * HOUR, stages: [], stageTtlMs: 1, revive: false }
    // The lock is held throughout: what waited for it would not come back.
    expect(await catalog.renew(request, call())).toEqual({ pins: [], stages: [] })
    const { pins: held } = await catalog.explain(keyOf(2), call())
    expect(held[0]?.expiresInMs).toBeGreaterThan(4 * HOUR)
  })
})

describeServer('what a put tells the window', () => {
  test('reaches a row that was written while the put waited for the entry', async () => {
    const { at, catalog, sql } = await openPool({ lockTimeoutMs: 10_000 })
    await catalog.publish([inline(1)], call())
    const other = await stranger(at)
    await other.begin()
    await other.say('SELECT 1 FROM $.entries FOR UPDATE')
    const put = catalog.publish([inline(1)], call())
    await other.blocks()
    await other.say("INSERT INTO $.gc_window VALUES ($1::bytea, '', now(), 0)", [digest(1)])
    await other.commit()
    expect((await put)[0]?.outcome).toBe('existed')
    expect(await sql('SELECT cancelled FROM $.gc_window')).toEqual([{ cancelled: true }])
  })

  test('reaches the row that a direct delete left when the entry is made anew', async () => {
    const { catalog, sql } = await swept(1)
    const marked = await catalog.mark(keyOf(1), call())
    if (typeof marked === 'string') throw new Error(marked)
    await catalog.remove([{ kind: 'marked', key: keyOf(1), mark: marked.mark, live: false }], 0, undefined, call())
    await catalog.publish([inline(1)], call())
    expect(await sql('SELECT mark, cancelled FROM $.gc_window')).toEqual([{ mark: '', cancelled: true }])
  })

  test('is said by a revived pin too, and not by one that only lives on', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1, undefined, pinned(-1)), inline(2, undefined, pinned())], call())
    const lease = await leaseOf(catalog)
    await catalog.stageCandidates(lease, [keyOf(1)], call())
    await sql("INSERT INTO $.gc_window VALUES ($1, '', now(), 0)", digest(2))
    const pins = [1, 2].map(n => ({ key: keyOf(n), pin: pinOf() }))
    const request = { pins, pinTtlMs: HOUR, stages: [], stageTtlMs: 1, revive: true }
    expect((await catalog.renew(request, call())).pins).toEqual([])
    expect(await sql('SELECT cancelled FROM $.gc_window ORDER BY key')).toEqual([
      { cancelled: true },
      { cancelled: false }
    ])
  })
})

describeServer('two direct deletes of one key', () => {
  test('at once: one deletes, the other finds nothing', async () => {
    const one = await openPool()
    const two = await openPool({ at: one.at })
    for (let round = 1; round <= 10; round++) {
      await one.catalog.publish([inline(round)], call())
      const items = await Promise.all(
        [one, two].map(async ({ catalog }) => {
          const marked = await catalog.mark(keyOf(round), call())
          if (typeof marked === 'string') throw new Error(marked)
          return { kind: 'marked', key: keyOf(round), mark: marked.mark, live: false } as const
        })
      )
      const outcomes = await Promise.all(
        [one, two].map(({ catalog }, i) => catalog.remove([items[i] as Removal], 0, undefined, call()))
      )
      expect(names(outcomes.flat()).sort()).toEqual(['absent', 'deleted'])
    }
  })
})

describeServer('two that heal one entry', () => {
  test('at once: one heals, the other finds it healed, and neither stage is lost from sight', async () => {
    const { catalog } = await openPool()
    await catalog.stage(
      [1, 2, 3].map(n => ({ id: stageOf(n), ttlMs: HOUR })),
      call()
    )
    await catalog.publish([staged(1)], call())
    const healing = (await catalog.find([keyOf(1)], call()))[0]?.place
    const outcomes = await Promise.all(
      [2, 3].map(stage => catalog.publish([staged(1, stage, healing && { healing })], call()))
    )
    expect(
      outcomes
        .flat()
        .map(({ outcome }) => outcome)
        .sort()
    ).toEqual(['existed', 'healed'])
    expect(await catalog.staged([2, 3].map(stageOf), call())).toContain(true)
    expect((await catalog.trash(undefined, 9, call())).map(({ length }) => length)).toEqual([1_000_000])
  })
})
