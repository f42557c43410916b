import { digestHexOf, type Lease } from '@alkblobs/core/engine'
import { describe, expect, test } from 'vitest'
import { call, HOUR, inline, keyOf, OTHER, openPool, pinned, pinOf, stageOf } from './fixture.js'

const PINS = 'SELECT owner, generation, expires_at FROM gc_pins ORDER BY owner'
type Row = { owner: string; generation: number; expires_at: number }

describe('a pin row', () => {
  test('keeps the highest generation and the latest expiry', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1, undefined, pinned(HOUR, pinOf(5)))], call())
    const [before] = sql(PINS) as Row[]
    await catalog.publish([inline(1, undefined, pinned(10, pinOf(4)))], call())
    expect(sql(PINS)).toEqual([before])
    await catalog.pin([{ key: keyOf(1), pin: pinOf(6), ttlMs: 2 * HOUR }], call())
    const [after] = sql(PINS) as Row[]
    expect(after?.generation).toBe(6)
    expect(after?.expires_at).toBeGreaterThan(before?.expires_at ?? Infinity)
  })

  test('is written only for an entry that exists', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1)], call())
    const items = [2, 1].map(n => ({ key: keyOf(n), pin: pinOf(), ttlMs: HOUR }))
    expect((await catalog.pin(items, call())).map(entry => entry?.key)).toEqual([undefined, keyOf(1)])
    expect(sql(PINS)).toHaveLength(1)
  })

  test('is released by its generation or a higher one, by its owner alone', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1, undefined, pinned(HOUR, pinOf(3)))], call())
    await catalog.release(
      [
        { key: keyOf(1), pin: pinOf(2) },
        { key: keyOf(1), pin: pinOf(9, OTHER) }
      ],
      call()
    )
    expect(sql(PINS)).toHaveLength(1)
    await catalog.release([{ key: keyOf(1), pin: pinOf(3) }], call())
    await catalog.release([{ key: keyOf(1), pin: pinOf(3) }], call())
    expect(sql(PINS)).toHaveLength(0)
  })
})

describe('renewal', () => {
  const renew = (pins: { generation: number }[], revive = false) => ({
    pins: pins.map(({ generation }) => ({ key: keyOf(1), pin: pinOf(generation) })),
    pinTtlMs: HOUR,
    stages: [],
    stageTtlMs: HOUR,
    revive
  })

  test('moves the expiry of rows of that generation or higher, and names those it did not find', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1, undefined, pinned(5_000, pinOf(3)))], call())
    const [before] = sql(PINS) as Row[]
    expect((await catalog.renew(renew([{ generation: 4 }]), call())).pins).toHaveLength(1)
    expect(sql(PINS)).toEqual([before])
    expect((await catalog.renew(renew([{ generation: 2 }]), call())).pins).toEqual([])
    expect((sql(PINS) as Row[])[0]?.expires_at).toBeGreaterThan(before?.expires_at ?? Infinity)
  })

  test('revives an expired row only when told to, and never makes one', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1, undefined, pinned(-1))], call())
    expect((await catalog.renew(renew([{ generation: 1 }]), call())).pins).toHaveLength(1)
    expect((await catalog.renew(renew([{ generation: 1 }], true), call())).pins).toEqual([])
    sql('DELETE FROM gc_pins')
    expect((await catalog.renew(renew([{ generation: 1 }], true), call())).pins).toHaveLength(1)
    expect(sql(PINS)).toEqual([])
  })

  test('that revives a row cancels what was staged or marked while it was expired', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1, undefined, pinned(-1)), inline(2)], call())
    const lease = await catalog.lease(call())
    expect(await catalog.stageCandidates(lease as Lease, [keyOf(1), keyOf(2)], call())).toHaveLength(2)
    await catalog.mark(keyOf(1), call())
    await catalog.renew(renew([{ generation: 1 }]), call())
    const rows = () => sql('SELECT lower(hex(key)) AS key, cancelled FROM gc_window ORDER BY cancelled')
    expect((rows() as { cancelled: number }[]).map(({ cancelled }) => cancelled)).toEqual([0, 0, 0])
    await catalog.renew(renew([{ generation: 1 }], true), call())
    const [one, two] = [digestHexOf(keyOf(1)), digestHexOf(keyOf(2))]
    expect(rows()).toEqual([
      { key: two, cancelled: 0 },
      { key: one, cancelled: 1 },
      { key: one, cancelled: 1 }
    ])
    await lease?.release()
  })

  test('of stages lets those live that have not expired', async () => {
    const { catalog } = await openPool()
    await catalog.stage(
      [
        { id: stageOf(1), ttlMs: 5_000 },
        { id: stageOf(2), ttlMs: -1 }
      ],
      call()
    )
    const request = { ...renew([], true), stages: [stageOf(1), stageOf(2), stageOf(3)] }
    expect((await catalog.renew(request, call())).stages).toEqual([stageOf(2), stageOf(3)])
    expect(await catalog.staged([stageOf(1), stageOf(2)], call())).toEqual([true, false])
  })

  test('of ten thousand pins is a few transactions, and complete', async () => {
    const { catalog, sql } = await openPool()
    const keys = Array.from({ length: 10_000 }, (_, n) => keyOf(n))
    for (let i = 0; i < 10; i++) {
      await catalog.publish(
        keys.slice(i * 1000, i * 1000 + 1000).map((_, n) => inline(i * 1000 + n, new Uint8Array(1), pinned())),
        call()
      )
    }
    const pins = keys.map(key => ({ key, pin: pinOf() }))
    const lost = await catalog.renew({ pins, pinTtlMs: 9 * HOUR, stages: [], stageTtlMs: 1, revive: false }, call())
    expect(lost.pins).toEqual([])
    expect(sql('SELECT count(*) AS n FROM gc_pins WHERE expires_at > ?', Date.now() + 8 * HOUR)).toEqual([
      { n: 10_000 }
    ])
  })
})
