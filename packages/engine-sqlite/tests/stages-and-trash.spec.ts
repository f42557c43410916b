import type { Found } from '@alkblobs/core/engine'
import { describe, expect, test } from 'vitest'
import { call, HOUR, inline, keyOf, locatorOf, openPool, staged, stageOf } from './fixture.js'

const sealed = (n: number, stage = n): Found => ({
  stage: stageOf(stage),
  sealed: { locator: locatorOf(stage), key: keyOf(n), length: 1_000_000, whole: true }
})

describe('stages', () => {
  test('live until they expire', async () => {
    const { catalog } = await openPool()
    await catalog.stage(
      [
        { id: stageOf(1), ttlMs: HOUR },
        { id: stageOf(2), ttlMs: 0 }
      ],
      call()
    )
    expect(await catalog.staged([3, 2, 1].map(stageOf), call())).toEqual([false, false, true])
  })

  test('that end without a publication go to trash once, droppable at once', async () => {
    const { catalog } = await openPool()
    await catalog.stage(
      [
        { id: stageOf(1), ttlMs: HOUR },
        { id: stageOf(2), ttlMs: -1 }
      ],
      call()
    )
    expect(await catalog.unstage([1, 2, 3].map(stageOf), call())).toEqual([true, true, false])
    expect(await catalog.unstage([stageOf(1)], call())).toEqual([false])
    const trash = await catalog.trash(undefined, 10, call())
    expect(trash).toEqual([1, 2].map(n => ({ what: stageOf(n), key: undefined, length: undefined, attempts: 0 })))
    expect(await catalog.publish([staged(1)], call())).toEqual([{ outcome: 'stage-lost' }])
  })
})

describe('trash', () => {
  test('is paged in order, and its rows end or are put off', async () => {
    const { catalog, sql } = await openPool()
    const ids = [1, 2, 3, 4].map(stageOf)
    await catalog.stage(
      ids.map(id => ({ id, ttlMs: HOUR })),
      call()
    )
    await catalog.unstage(ids, call())
    const first = await catalog.trash(undefined, 3, call())
    expect(first.map(({ what }) => what)).toEqual(ids.slice(0, 3))
    expect((await catalog.trash(first[2]?.what, 3, call())).map(({ what }) => what)).toEqual(ids.slice(3))
    await catalog.dropped([{ what: stageOf(1) }, { what: stageOf(2), retryAfterMs: HOUR }], call())
    expect((await catalog.trash(undefined, 9, call())).map(({ what }) => what)).toEqual(ids.slice(2))
    sql('UPDATE trash SET not_before = 0')
    expect((await catalog.trash(undefined, 1, call()))[0]).toMatchObject({ what: stageOf(2), attempts: 1 })
  })

  test('is paged from the very first name, be it empty', async () => {
    const { catalog, sql } = await openPool()
    await catalog.stage([{ id: stageOf(1), ttlMs: HOUR }], call())
    await catalog.unstage([stageOf(1)], call())
    sql("INSERT INTO trash (what, not_before, durable) VALUES ('', 0, 1)")
    const [first] = await catalog.trash(undefined, 1, call())
    expect(first?.what).toBe('')
    expect((await catalog.trash(first?.what, 9, call())).map(({ what }) => what)).toEqual([stageOf(1)])
  })

  test('of a pool that trusts the system is on disk before it is answered', async () => {
    const { catalog, sql } = await openPool({ durability: 'os' })
    await catalog.stage([{ id: stageOf(1), ttlMs: HOUR }], call())
    await catalog.unstage([stageOf(1)], call())
    expect(sql('SELECT durable FROM trash')).toEqual([{ durable: 0 }])
    expect(await catalog.trash(undefined, 9, call())).toHaveLength(1)
    expect(sql('SELECT durable FROM trash')).toEqual([{ durable: 1 }])
  })

  test('of another opener that trusts the system is on disk before a durable one answers it', async () => {
    const careless = await openPool({ durability: 'os' })
    const careful = await openPool({ file: careless.file })
    await careless.catalog.stage([{ id: stageOf(1), ttlMs: HOUR }], call())
    await careless.catalog.unstage([stageOf(1)], call())
    expect(await careful.catalog.trash(undefined, 9, call())).toHaveLength(1)
    expect(careful.sql('SELECT durable FROM trash')).toEqual([{ durable: 1 }])
  })
})

describe('bodies that a scan found', () => {
  test('are known by entry, stage or trash, and by nothing else', async () => {
    const { catalog } = await openPool()
    await catalog.stage(
      [1, 2, 3].map(n => ({ id: stageOf(n), ttlMs: HOUR })),
      call()
    )
    await catalog.publish([staged(1), inline(9)], call())
    await catalog.unstage([stageOf(3)], call())
    const found = [
      sealed(1),
      { stage: stageOf(2) },
      sealed(5, 2),
      { stage: stageOf(3) },
      sealed(7, 3),
      { stage: stageOf(8) },
      sealed(9, 8)
    ]
    expect(await catalog.known(found, call())).toEqual([true, true, true, true, true, false, false])
  })

  test('go to trash only while they are unknown', async () => {
    const { catalog } = await openPool()
    await catalog.stage([{ id: stageOf(1), ttlMs: HOUR }], call())
    await catalog.publish([staged(1)], call())
    await catalog.discard([sealed(1), sealed(4), { stage: stageOf(6) }], call())
    const trash = await catalog.trash(undefined, 9, call())
    expect(trash.map(({ what, key }) => [what, key])).toEqual([
      [locatorOf(4), keyOf(4)],
      [stageOf(6), undefined]
    ])
    expect(await catalog.known([sealed(4), { stage: stageOf(6) }], call())).toEqual([true, true])
  })
})
