import type { Owner, PinId } from '@alkblobs/core/engine'
import { freshDatabase, freshRole } from '@alkblobs/testkit'
import { expect, onTestFinished, test } from 'vitest'
import {
  call,
  describeServer,
  failure,
  inline,
  keyOf,
  leaseOf,
  locatorOf,
  openPool,
  openSchema,
  pinOf,
  place,
  record,
  stageOf,
  stranger,
  terminate
} from './fixture.js'

const isThere = async ({ schema, query }: Awaited<ReturnType<typeof place>>) =>
  (await query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])).length > 0

describeServer('a schema that does not exist', () => {
  test('is read as an empty pool, and nothing is made', async () => {
    const at = await place()
    const { catalog } = await openSchema(at)
    const pin: PinId = { key: keyOf(1), pin: pinOf(1, 'me' as Owner) }
    const found = [{ stage: stageOf(1), sealed: { locator: locatorOf(1), key: keyOf(1), length: 1, whole: true } }]
    const nothing = { entries: 0, bytes: 0 }
    expect(await catalog.meta.read(call())).toBeUndefined()
    expect(await catalog.find([keyOf(1), keyOf(2)], call())).toEqual([undefined, undefined])
    expect(await catalog.read(keyOf(1), call())).toBeUndefined()
    expect(await catalog.list(undefined, 10, call())).toEqual([])
    expect(await catalog.explain(keyOf(1), call())).toEqual({ entry: undefined, pins: [], window: undefined })
    expect(await catalog.usage(call())).toEqual({
      kv: nothing,
      large: nothing,
      pins: 0,
      window: 0,
      stages: 0,
      trash: 0
    })
    expect(await catalog.staged([stageOf(1)], call())).toEqual([false])
    expect(await catalog.trash(undefined, 10, call())).toEqual([])
    expect(await catalog.known(found, call())).toEqual([false])
    expect(await catalog.mark(keyOf(1), call())).toBe('absent')
    expect(await catalog.pin([{ key: keyOf(1), pin: pinOf(), ttlMs: 1 }], call())).toEqual([undefined])
    expect(await catalog.unstage([stageOf(1)], call())).toEqual([false])
    await catalog.release([pin], call())
    await catalog.dropped([{ what: stageOf(1) }], call())
    const request = { pins: [pin], pinTtlMs: 1, stages: [stageOf(1)], stageTtlMs: 1, revive: true }
    expect(await catalog.renew(request, call())).toEqual({ pins: [pin], stages: [stageOf(1)] })
    expect(await catalog.meta.compareAndSet(record, { ...record, windowDelayMs: 1 }, call())).toBe(false)
    const lease = await leaseOf(catalog)
    expect((await catalog.candidates(lease, undefined, 9, call())).scanned).toBe(0)
    expect(await catalog.stageCandidates(lease, [keyOf(1)], call())).toEqual([])
    expect((await catalog.due(lease, undefined, 9, call())).keys).toEqual([])
    expect(await isThere(at)).toBe(false)
  })

  test('is no place to publish, stage, discard or remove before there is a record', async () => {
    const at = await place()
    const { catalog } = await openSchema(at)
    const item = { kind: 'marked', key: keyOf(1), mark: 'x' as never, live: false } as const
    for (const write of [
      () => catalog.publish([inline(1)], call()),
      () => catalog.stage([{ id: stageOf(1), ttlMs: 1 }], call()),
      () => catalog.discard([{ stage: stageOf(1) }], call()),
      () => catalog.remove([item], 0, undefined, call())
    ]) {
      expect(await failure(write())).toBe('foreign')
    }
    expect(await isThere(at)).toBe(false)
  })

  test('is noticed when somebody else makes it, and when somebody removes it', async () => {
    const at = await place()
    const early = await openSchema(at)
    expect(await early.catalog.meta.read(call())).toBeUndefined()
    const { catalog } = await openPool({ at })
    await catalog.publish([inline(1)], call())
    expect(await early.catalog.meta.read(call())).toEqual(record)
    expect((await early.catalog.find([keyOf(1)], call()))[0]?.key).toBe(keyOf(1))
    await at.query(`DROP SCHEMA ${at.schema} CASCADE`)
    expect(await early.catalog.find([keyOf(1)], call())).toEqual([undefined])
    expect(await failure(early.catalog.publish([inline(1)], call()))).toBe('foreign')
    expect(await early.catalog.meta.compareAndSet(undefined, record, call())).toBe(true)
    expect((await early.catalog.publish([inline(1)], call()))[0]?.outcome).toBe('created')
  })

  test('is made once by ten that do it together', async () => {
    const at = await place()
    const opened = await Promise.all(
      Array.from({ length: 10 }, () => openSchema(at, { poolMax: 2, lockTimeoutMs: 20_000 }))
    )
    const won = await Promise.all(opened.map(({ catalog }) => catalog.meta.compareAndSet(undefined, record, call())))
    expect(won.filter(one => one)).toHaveLength(1)
    expect(await at.query(`SELECT part, version FROM ${at.schema}.alkblobs`)).toEqual([{ part: 'catalog', version: 1 }])
  })

  test('is made whole or not at all: a maker that dies leaves nothing, and the next one makes it', async () => {
    const at = await place()
    const { advisoryKey } = await import('../src/schema.js')
    const other = await stranger(at)
    await other.begin()
    await other.say('SELECT pg_advisory_xact_lock($1::bigint)', [advisoryKey('schema', at.schema)])
    await other.say(`CREATE SCHEMA ${at.schema}`)
    const { catalog } = await openSchema(at, { lockTimeoutMs: 20_000 })
    const made = catalog.meta.compareAndSet(undefined, record, call(20_000))
    await other.blocks()
    await terminate(at, other.pid)
    expect(await made).toBe(true)
  })
})

describeServer('the record', () => {
  test('keeps where the pool is and what it was copied from, and is compared with both', async () => {
    const { catalog } = await openPool()
    const server = { system: '7345678901234567890', database: '4294967295', timeline: 4_000_000_000 }
    const full = { ...record, server, forkedFrom: 'original' as never }
    expect(await catalog.meta.compareAndSet(record, full, call())).toBe(true)
    expect(await catalog.meta.read(call())).toEqual(full)
    for (const other of [
      { ...full, server: { ...server, system: '7' } },
      { ...full, server: { ...server, database: '1' } },
      { ...full, server: { ...server, timeline: 1 } },
      { ...full, forkedFrom: 'another' as never },
      record
    ])
      expect(await catalog.meta.compareAndSet(other, record, call()), JSON.stringify(other)).toBe(false)
    expect(await catalog.meta.compareAndSet(full, record, call())).toBe(true)
    expect(await catalog.meta.read(call())).toEqual(record)
  })

  test('of a server is what any session of it finds, and another database has another', async () => {
    const at = await place()
    const [{ catalog }, again] = [await openSchema(at), await openSchema(at)]
    const identity = await catalog.server?.identity(call())
    expect(identity).toMatchObject({ system: expect.stringMatching(/^\d{10,20}$/), timeline: expect.any(Number) })
    expect(await again.catalog.server?.identity(call())).toEqual(identity)
    const [row] = await at.query('SELECT system_identifier::text AS system FROM pg_control_system()')
    expect(row).toEqual({ system: identity?.system })
    const database = await freshDatabase()
    onTestFinished(() => database.drop())
    const other = await openSchema({ url: database.url, schema: 'other' })
    const found = await other.catalog.server?.identity(call())
    expect(found).toEqual({ ...identity, database: found?.database })
    expect(found?.database).not.toBe(identity?.database)
    expect([await catalog.server?.unfit(call()), catalog.server?.sessionsMax]).toEqual([undefined, 6])
  })
})

describeServer('a schema made by hand', () => {
  test('that is empty becomes the pool of a role that may create in it, but makes no schemas', async () => {
    const database = await freshDatabase()
    onTestFinished(() => database.drop())
    const role = await freshRole(database)
    onTestFinished(() => role.drop())
    await database.query(`CREATE SCHEMA given AUTHORIZATION ${role.name}`)
    const url = `postgres://${role.name}:${role.password}@${database.host}:${database.port}/${database.database}`
    const { catalog } = await openSchema({ url, schema: 'given' })
    expect(await catalog.meta.compareAndSet(undefined, record, call())).toBe(true)
    await catalog.publish([inline(1)], call())
    const lease = await leaseOf(catalog)
    expect((await catalog.candidates(lease, undefined, 9, call())).keys).toEqual([keyOf(1)])
    const other = await openSchema({ url, schema: 'other' })
    expect(await failure(other.catalog.meta.compareAndSet(undefined, record, call()))).toBe('denied')
  })

  test('that holds something else is refused as foreign and left as it is', async () => {
    const at = await place()
    await at.query(`CREATE SCHEMA ${at.schema}; CREATE TABLE ${at.schema}.entries (a int)`)
    expect(await failure(openSchema(at))).toBe('foreign')
    await at.query(`DROP TABLE ${at.schema}.entries`)
    const { catalog } = await openSchema(at)
    await at.query(`CREATE TABLE ${at.schema}.alkblobs (a int)`)
    expect(await failure(catalog.meta.compareAndSet(undefined, record, call()))).toBe('foreign')
    expect(await at.query('SELECT tablename FROM pg_tables WHERE schemaname = $1', [at.schema])).toEqual([
      { tablename: 'alkblobs' }
    ])
  })

  test('that has a later layout is refused as newer', async () => {
    const { at, sql } = await openPool()
    await sql('UPDATE $.alkblobs SET version = 2')
    expect(await failure(openSchema(at))).toBe('newer')
  })

  test('may have any name', async () => {
    const database = await freshDatabase()
    onTestFinished(() => database.drop())
    for (const schema of ['Pool "1"; DROP', '$&', "it's", 'public2 ', 'ünï', 'select']) {
      const { catalog } = await openSchema({ url: database.url, schema })
      expect(await catalog.meta.compareAndSet(undefined, record, call())).toBe(true)
      expect((await catalog.publish([inline(1)], call()))[0]?.outcome).toBe('created')
      expect(await database.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [schema])).toHaveLength(1)
    }
  })
})

describeServer('a pool', () => {
  test('is read but not written when its protocol is later', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1)], call())
    const lease = await leaseOf(catalog)
    await sql('UPDATE $.meta SET protocol = 99')
    expect((await catalog.read(keyOf(1), call()))?.entry.key).toBe(keyOf(1))
    const writes: (() => Promise<unknown>)[] = [
      () => catalog.publish([inline(2)], call()),
      () => catalog.publish([inline(2), inline(3)], call()),
      () => catalog.pin([{ key: keyOf(1), pin: pinOf(), ttlMs: 1 }], call()),
      () => catalog.stage([{ id: stageOf(1), ttlMs: 1 }], call()),
      () => catalog.mark(keyOf(1), call()),
      () => catalog.stageCandidates(lease, [keyOf(1)], call()),
      () => catalog.remove([{ kind: 'candidate', key: keyOf(1), live: false }], 0, lease, call()),
      () => catalog.discard([{ stage: stageOf(1) }], call())
    ]
    for (const write of writes) expect(await failure(write())).toBe('newer')
    const counts = 'SELECT (SELECT count(*)::int FROM $.entries) AS n, (SELECT count(*)::int FROM $.gc_window) AS w'
    expect(await sql(counts)).toEqual([{ n: 1, w: 0 }])
  })

  test('keeps raw keys, times with their zone and bodies as they are, out of line', async () => {
    const { at, catalog, sql } = await openPool()
    await catalog.publish([inline(1, Buffer.alloc(100_000))], call())
    expect(await sql('SELECT octet_length(key) AS n, pg_column_size(body) AS held FROM $.entries')).toEqual([
      { n: 32, held: 100_000 }
    ])
    const times = `SELECT DISTINCT data_type FROM information_schema.columns
      WHERE table_schema = $1 AND data_type LIKE 'time%'`
    expect(await at.query(times, [at.schema])).toEqual([{ data_type: 'timestamp with time zone' }])
    expect(await at.query("SELECT 1 FROM pg_constraint WHERE confdeltype NOT IN ('a', ' ')")).toEqual([])
  })

  test('belongs to one of two that make its record at once, and changes only from what is expected', async () => {
    const at = await place()
    const [one, two] = [await openSchema(at), await openSchema(at)]
    const records = [record, { ...record, poolId: 'pool-2' as never }]
    const won = await Promise.all(
      [one, two].map(({ catalog }, i) => catalog.meta.compareAndSet(undefined, records[i] as typeof record, call()))
    )
    expect(won.sort()).toEqual([false, true])
    const now = await one.catalog.meta.read(call())
    const changes = await Promise.all(
      [one, two].map(({ catalog }, i) => catalog.meta.compareAndSet(now, { ...record, windowDelayMs: i + 1 }, call()))
    )
    expect(changes.sort()).toEqual([false, true])
  })
})
