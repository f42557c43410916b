import { randomBytes } from 'node:crypto'
import { describe, expect, test } from 'vitest'
import {
  byKey,
  call,
  HOUR,
  inline,
  keyOf,
  locatorOf,
  OTHER,
  openPool,
  pinned,
  pinOf,
  staged,
  stageOf
} from './fixture.js'

const stageFor = (n: number, ttlMs = HOUR) => [{ id: stageOf(n), ttlMs }]

describe('publish', () => {
  test('makes an entry with an inline body that reads back, the empty one too', async () => {
    const { catalog } = await openPool()
    const body = randomBytes(70_000)
    const [made, empty] = await catalog.publish([inline(1, body), inline(2, new Uint8Array(0))], call())
    expect(made).toEqual({
      outcome: 'created',
      entry: { key: keyOf(1), length: 70_000, place: { tier: 'kv', length: 70_000 } }
    })
    expect(empty?.outcome).toBe('created')
    const read = await catalog.read(keyOf(1), call())
    expect(Buffer.compare(read?.body ?? Buffer.alloc(0), body)).toBe(0)
    read?.body?.fill(0)
    expect(Buffer.compare((await catalog.read(keyOf(1), call()))?.body ?? Buffer.alloc(0), body)).toBe(0)
    expect((await catalog.read(keyOf(2), call()))?.body?.byteLength).toBe(0)
  })

  test('makes an entry that is read at once, until it is gone, and says nothing at once where there is none', async () => {
    const { catalog } = await openPool()
    expect(catalog.readNow?.(keyOf(1))).toBeUndefined()
    const body = randomBytes(70_000)
    await catalog.stage(stageFor(2), call())
    await catalog.publish([inline(1, body), staged(2), inline(3, new Uint8Array(0))], call())
    const read = catalog.readNow?.(keyOf(1))
    expect(read?.entry).toEqual({ key: keyOf(1), length: 70_000, place: { tier: 'kv', length: 70_000 } })
    read?.body?.fill(0)
    expect(body.equals(catalog.readNow?.(keyOf(1))?.body as Uint8Array)).toBe(true)
    for (const n of [2, 3]) expect(catalog.readNow?.(keyOf(n))).toEqual(await catalog.read(keyOf(n), call()))
    expect(catalog.readNow?.(keyOf(4))).toBeUndefined()
    const marked = await catalog.mark(keyOf(1), call())
    if (typeof marked === 'string') throw new Error(marked)
    await catalog.remove([{ kind: 'marked', key: keyOf(1), mark: marked.mark, live: false }], 0, undefined, call())
    expect(catalog.readNow?.(keyOf(1))).toBeUndefined()
  })

  test('makes entries that are read together, in one transaction that is over with the reads, however they end', async () => {
    const { catalog, sql } = await openPool()
    const lengths = () => [1, 2, 3].map(n => catalog.readNow?.(keyOf(n))?.entry.length)
    const together: (number | undefined)[][] = []
    catalog.readTogether?.(() => together.push(lengths()))
    await catalog.publish([inline(1), inline(2, new Uint8Array(0))], call())
    catalog.readTogether?.(() => {
      together.push(lengths())
      // Somebody else's transaction, in the middle of it.
      sql('UPDATE entries SET length = 7')
      together.push(lengths())
    })
    together.push(lengths())
    const [none, there, changed] = [Array(3).fill(undefined), [100, 0, undefined], [7, 7, undefined]]
    expect(together).toEqual([none, there, there, changed])
    const failure = new Error('of the reads')
    const failing = () => {
      lengths()
      throw failure
    }
    expect(() => catalog.readTogether?.(failing)).toThrow(failure)
    expect((await catalog.publish([inline(3)], call()))[0]?.outcome).toBe('created')
    expect(lengths()).toEqual([7, 7, 100])
  })

  test('finds an entry that is there: the first writer wins, and the stage of the second stays', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1)], call())
    await catalog.stage(stageFor(1), call())
    const [second] = await catalog.publish([staged(1)], call())
    expect(second).toMatchObject({ outcome: 'existed', entry: { length: 100, place: { tier: 'kv', length: 100 } } })
    expect(await catalog.staged([stageOf(1)], call())).toEqual([true])
    expect(sql('SELECT count(*) AS n FROM bodies')).toEqual([{ n: 1 }])
  })

  test('without bytes finds an entry or answers absent, and makes nothing', async () => {
    const { catalog, sql } = await openPool()
    expect(await catalog.publish([byKey(1, pinned())], call())).toEqual([{ outcome: 'absent' }])
    expect(sql('SELECT * FROM gc_pins')).toEqual([])
    await catalog.publish([inline(1)], call())
    expect(await catalog.publish([byKey(1)], call())).toMatchObject([{ outcome: 'existed' }])
  })

  test('of a staged body ends its stage and keeps the locator', async () => {
    const { catalog } = await openPool()
    await catalog.stage(stageFor(1), call())
    const [made] = await catalog.publish([staged(1)], call())
    expect(made).toMatchObject({
      outcome: 'created',
      entry: { length: 1_000_000, place: { tier: 'large', locator: locatorOf(1) } }
    })
    expect(await catalog.staged([stageOf(1)], call())).toEqual([false])
    expect(await catalog.trash(undefined, 10, call())).toEqual([])
    expect(await catalog.read(keyOf(1), call())).toEqual({
      entry: { key: keyOf(1), length: 1_000_000, place: { tier: 'large', locator: locatorOf(1) } }
    })
  })

  test.each([
    ['gone', 0],
    ['expired', -1]
  ])('of a stage that is %s does nothing, even where the entry exists', async (_, ttlMs) => {
    const { catalog, sql } = await openPool()
    if (ttlMs < 0) await catalog.stage(stageFor(1, ttlMs), call())
    expect(await catalog.publish([staged(1, 1, pinned())], call())).toEqual([{ outcome: 'stage-lost' }])
    await catalog.publish([inline(1)], call())
    expect(await catalog.publish([staged(1, 1, pinned())], call())).toEqual([{ outcome: 'stage-lost' }])
    expect(sql('SELECT * FROM gc_pins')).toEqual([])
  })

  test('heals an entry that still lies where it was found broken; the old body becomes trash after its delay', async () => {
    const { catalog, sql } = await openPool()
    await catalog.stage([...stageFor(1), ...stageFor(2)], call())
    await catalog.publish([staged(1)], call())
    const healing = { tier: 'large', locator: locatorOf(1) } as const
    const [healed] = await catalog.publish([staged(1, 2, { healing, trashDelayMs: HOUR })], call())
    expect(healed).toMatchObject({ outcome: 'healed', entry: { place: { locator: locatorOf(2) } } })
    expect(await catalog.staged([stageOf(2)], call())).toEqual([false])
    expect(await catalog.trash(undefined, 10, call())).toEqual([])
    sql('UPDATE trash SET not_before = 0')
    expect(await catalog.trash(undefined, 10, call())).toEqual([
      { what: locatorOf(1), key: keyOf(1), length: 1_000_000, attempts: 0 }
    ])
  })

  test('heals across tiers in both directions', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1)], call())
    await catalog.stage(stageFor(1), call())
    const large = { tier: 'large', locator: locatorOf(1) } as const
    await catalog.publish([staged(1, 1, { healing: { tier: 'kv', length: 100 } })], call())
    expect((await catalog.find([keyOf(1)], call()))[0]?.place).toEqual(large)
    expect(sql('SELECT count(*) AS n FROM bodies')).toEqual([{ n: 0 }])
    await catalog.publish([inline(1, randomBytes(50), { healing: large })], call())
    expect((await catalog.read(keyOf(1), call()))?.body?.byteLength).toBe(50)
  })

  test('does not heal an entry that lies elsewhere, or without bytes', async () => {
    const { catalog } = await openPool()
    await catalog.publish([inline(1)], call())
    const healing = { tier: 'kv', length: 99 } as const
    expect(await catalog.publish([inline(1, randomBytes(5), { healing })], call())).toMatchObject([
      { outcome: 'existed' }
    ])
    const [none] = await catalog.publish([byKey(1, { healing: { tier: 'kv', length: 100 } })], call())
    expect(none?.outcome).toBe('existed')
    expect((await catalog.read(keyOf(1), call()))?.body?.byteLength).toBe(100)
  })

  test('answers in the order of its items', async () => {
    const { catalog } = await openPool()
    await catalog.publish([inline(2)], call())
    const outcomes = await catalog.publish([inline(3), byKey(9), inline(2), staged(4)], call())
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['created', 'absent', 'existed', 'stage-lost'])
  })
})

describe('looking', () => {
  test('find answers per key, in order, with the length really held', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1), inline(2), inline(3)], call())
    sql(
      'UPDATE bodies SET body = substr(body, 1, 60) WHERE id = (SELECT id FROM entries WHERE hex(key) LIKE ?)',
      '00000001%'
    )
    sql('DELETE FROM bodies WHERE id = (SELECT id FROM entries WHERE hex(key) LIKE ?)', '00000002%')
    const found = await catalog.find([keyOf(3), keyOf(8), keyOf(2), keyOf(1)], call())
    expect(found.map(entry => entry?.place)).toEqual([
      { tier: 'kv', length: 100 },
      undefined,
      { tier: 'kv', length: 0 },
      { tier: 'kv', length: 60 }
    ])
    expect(await catalog.read(keyOf(2), call())).toMatchObject({ entry: { length: 100, place: { length: 0 } } })
    expect((await catalog.read(keyOf(1), call()))?.body?.byteLength).toBe(60)
  })

  test('list pages in key order, after the given key, without reading bodies', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish(
      [5, 1, 300, 2, 256].map(n => inline(n)),
      call()
    )
    sql('DROP TABLE bodies')
    expect((await catalog.list(undefined, 3, call())).map(({ key }) => key)).toEqual([1, 2, 5].map(keyOf))
    expect((await catalog.list(keyOf(5), 3, call())).map(({ key }) => key)).toEqual([256, 300].map(keyOf))
    expect(await catalog.list(keyOf(300), 3, call())).toEqual([])
  })

  test('usage counts entries and bytes of each tier, and rows', async () => {
    const { catalog } = await openPool()
    await catalog.stage([...stageFor(1), ...stageFor(2)], call())
    await catalog.publish([inline(1, undefined, pinned()), inline(2), staged(3, 1)], call())
    expect(await catalog.usage(call())).toEqual({
      kv: { entries: 2, bytes: 200 },
      large: { entries: 1, bytes: 1_000_000 },
      pins: 1,
      window: 0,
      stages: 1,
      trash: 0
    })
  })

  test('explain tells of entry, pins that hold, and the row of the window', async () => {
    const { catalog } = await openPool({ windowDelayMs: HOUR })
    await catalog.publish([inline(1)], call())
    const lease = await catalog.lease(call())
    if (!lease) throw new Error('no lease')
    await catalog.stageCandidates(lease, [keyOf(1)], call())
    const waiting = await catalog.explain(keyOf(1), call())
    expect(waiting.window).toMatchObject({ cancelled: false })
    expect(waiting.window?.dueInMs).toBeGreaterThan(HOUR - 5_000)
    await catalog.pin(
      [
        { key: keyOf(1), pin: pinOf(), ttlMs: HOUR },
        { key: keyOf(1), pin: pinOf(1, OTHER), ttlMs: -1 }
      ],
      call()
    )
    const explained = await catalog.explain(keyOf(1), call())
    expect(explained.pins).toEqual([{ owner: 'owner-a', expiresInMs: expect.closeTo(HOUR, -4) }])
    expect(explained.window).toMatchObject({ cancelled: true, dueInMs: 0 })
  })
})
