import { expect, test } from 'vitest'
import {
  call,
  describeServer,
  HOUR,
  inline,
  keyOf,
  leaseOf,
  OTHER,
  openPool,
  pinned,
  pinOf,
  sleep,
  stageOf,
  stranger
} from './fixture.js'

const PINS =
  'SELECT owner, generation::int, extract(epoch FROM expires_at)::float8 AS expires_at FROM $.gc_pins ORDER BY owner'
type Row = { owner: string; generation: number; expires_at: number }

describeServer('a pin row', () => {
  test('keeps the highest generation and the latest expiry', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1, undefined, pinned(HOUR, pinOf(5)))], call())
    const [before] = await sql<Row>(PINS)
    await catalog.publish([inline(1, undefined, pinned(10, pinOf(4)))], call())
    expect(await sql(PINS)).toEqual([before])
    await catalog.pin([{ key: keyOf(1), pin: pinOf(6), ttlMs: 2 * HOUR }], call())
    const [after] = await sql<Row>(PINS)
    expect(after?.generation).toBe(6)
    expect(after?.expires_at).toBeGreaterThan(before?.expires_at ?? Infinity)
  })

  test('is written only for an entry that exists', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1)], call())
    const items = [2, 1].map(n => ({ key: keyOf(n), pin: pinOf(), ttlMs: HOUR }))
    expect((await catalog.pin(items, call())).map(entry => entry?.key)).toEqual([undefined, keyOf(1)])
    expect(await sql(PINS)).toHaveLength(1)
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
    expect(await sql(PINS)).toHaveLength(1)
    await catalog.release([{ key: keyOf(1), pin: pinOf(3) }], call())
    await catalog.release([{ key: keyOf(1), pin: pinOf(3) }], call())
    expect(await sql(PINS)).toHaveLength(0)
  })
})

describeServer('renewal', () => {
  const renew = (pins: { generation: number }[], revive = false) => ({
    pins: pins.map(({ generation }) => ({ key: keyOf(1), pin: pinOf(generation) })),
    pinTtlMs: HOUR,
    stages: [],
    stageTtlMs: HOUR,
    revive
  })

  test('waits for nobody who is cancelling a candidate in a transaction that lasts, and revives after it', async () => {
    const { at, catalog, sql } = await openPool({ lockTimeoutMs: 10_000 })
    await catalog.publish([inline(1, undefined, pinned(1, pinOf(3)))], call())
    const lease = await leaseOf(catalog)
    while ((await catalog.stageCandidates(lease, [keyOf(1)], call())).length === 0) await sleep(5)
    const other = await stranger(at)
    await other.begin()
    await other.say('SELECT 1 FROM $.entries FOR KEY SHARE')
    await other.say('UPDATE $.gc_window SET cancelled = true')
    const started = performance.now()
    expect(await catalog.renew(renew([{ generation: 3 }], true), call())).toEqual({ pins: [], stages: [] })
    expect(performance.now() - started).toBeLessThan(2_000)
    expect(await sql('SELECT 1 FROM $.gc_pins WHERE expires_at > clock_timestamp()')).toEqual([])
    await other.rollback()
    expect(await catalog.renew(renew([{ generation: 3 }], true), call())).toEqual({ pins: [], stages: [] })
    expect(await sql('SELECT 1 FROM $.gc_pins WHERE expires_at > clock_timestamp()')).toHaveLength(1)
    expect(await sql('SELECT cancelled FROM $.gc_window')).toEqual([{ cancelled: true }])
  })

  test('moves the expiry of rows of that generation or higher, and names those it did not find', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1, undefined, pinned(60_000, pinOf(3)))], call())
    const [before] = await sql<Row>(PINS)
    expect((await catalog.renew(renew([{ generation: 4 }]), call())).pins).toHaveLength(1)
    expect(await sql(PINS)).toEqual([before])
    expect((await catalog.renew(renew([{ generation: 2 }]), call())).pins).toEqual([])
    expect((await sql<Row>(PINS))[0]?.expires_at).toBeGreaterThan(before?.expires_at ?? Infinity)
  })

  test('revives an expired row only when told to, and never makes one', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1, undefined, pinned(-1))], call())
    expect((await catalog.renew(renew([{ generation: 1 }]), call())).pins).toHaveLength(1)
    expect((await catalog.renew(renew([{ generation: 1 }], true), call())).pins).toEqual([])
    await sql('DELETE FROM $.gc_pins')
    expect((await catalog.renew(renew([{ generation: 1 }], true), call())).pins).toHaveLength(1)
    expect(await sql(PINS)).toEqual([])
  })

  test('of stages lets those live that have not expired', async () => {
    const { catalog } = await openPool()
    await catalog.stage(
      [
        { id: stageOf(1), ttlMs: 60_000 },
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
    expect(await sql("SELECT count(*)::int AS n FROM $.gc_pins WHERE expires_at > now() + interval '8 hours'")).toEqual(
      [{ n: 10_000 }]
    )
  })
})
