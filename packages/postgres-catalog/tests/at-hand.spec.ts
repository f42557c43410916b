import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  byKey,
  call,
  describeServer,
  failure,
  HOUR,
  inline,
  keyOf,
  locatorOf,
  openPool,
  pinned,
  pinOf,
  staged,
  stageOf
} from './fixture.js'

const LENGTH = 20_000
const EMPTY = Buffer.alloc(0)
const heavy = (n: number, length = LENGTH) => inline(n, randomBytes(length), pinned())

/** A pool in which the server refuses the first rows of this table; the sequence counts them past all rollbacks. */
async function refusing(table: 'entries' | 'gc_pins', times = 1_000) {
  const pool = await openPool()
  await pool.sql('CREATE SEQUENCE $.refused')
  await pool.sql(`CREATE FUNCTION $.refuse() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN
    IF nextval('$.refused') <= ${times} THEN RAISE disk_full; END IF; RETURN NEW; END $f$`)
  await pool.sql(`CREATE TRIGGER refuse BEFORE INSERT OR UPDATE ON $.${table} FOR EACH ROW EXECUTE FUNCTION $.refuse()`)
  return pool
}

describeServer('a publication of bytes at hand', () => {
  test('makes what is new, and finds, ends and pins the rest', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1), inline(2)], call())
    await catalog.stage([{ id: stageOf(7), ttlMs: HOUR }], call())
    const items = [
      heavy(5),
      { ...heavy(1), pin: { row: pinOf(3), ttlMs: HOUR } },
      heavy(4),
      staged(7, 7, pinned()),
      staged(8, 8),
      byKey(2),
      byKey(9),
      heavy(5),
      heavy(6)
    ]
    const outcomes = await catalog.publish(items, call())
    expect(outcomes.map(({ outcome }) => outcome)).toEqual([
      'created',
      'existed',
      'created',
      'created',
      'stage-lost',
      'existed',
      'absent',
      'existed',
      'created'
    ])
    for (const item of [items[0], items[2], items[8]]) {
      const { key, bytes } = item as ReturnType<typeof heavy>
      const body = bytes.kind === 'inline' ? bytes.body : Buffer.alloc(0)
      expect(Buffer.compare((await catalog.read(key, call()))?.body ?? Buffer.alloc(0), body)).toBe(0)
    }
    expect((await catalog.read(keyOf(7), call()))?.entry).toEqual({
      key: keyOf(7),
      length: 1_000_000,
      place: { tier: 'large', locator: locatorOf(7) }
    })
    expect(await sql('SELECT count(*)::int AS n FROM $.gc_pins')).toEqual([{ n: 5 }])
    expect(await sql('SELECT count(*)::int AS n FROM $.stages')).toEqual([{ n: 0 }])
  })

  test('cuts each body out of all of them, empty ones and absent ones among them', async () => {
    const { catalog } = await openPool()
    const lengths = [0, 1, 2, LENGTH, 0, 65_536, 3]
    const items = lengths.flatMap((length, n) => [heavy(2 * n, length), byKey(2 * n + 1)])
    const outcomes = await catalog.publish(items, call())
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(lengths.flatMap(() => ['created', 'absent']))
    for (const { key, bytes, length } of items) {
      const found = await catalog.read(key, call())
      if (bytes.kind !== 'inline') expect(found).toBeUndefined()
      else expect([found?.entry.length, Buffer.compare(found?.body ?? EMPTY, bytes.body)]).toEqual([length, 0])
    }
  })

  test('tells the window of each key, pinned or not, and no other', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish(
      [1, 2, 3].map(n => inline(n)),
      call()
    )
    await sql(`INSERT INTO $.gc_window (key, mark, staged_at, delay_ms) SELECT key, mark, now(), 0
      FROM $.entries, (VALUES (''), ('mark')) AS m (mark)`)
    await catalog.publish([heavy(1), byKey(2), byKey(9)], call())
    const told = await sql(
      'SELECT count(*)::int AS n, count(DISTINCT key)::int AS keys FROM $.gc_window WHERE cancelled'
    )
    expect(told).toEqual([{ n: 4, keys: 2 }])
  })

  test.each(['entries', 'gc_pins'] as const)(
    'of which the server refuses a row (%s) says why, and leaves nothing',
    async table => {
      const { catalog, sql } = await refusing(table)
      expect(await failure(catalog.publish([heavy(1), heavy(2)], call()))).toBe('full')
      expect(await sql('SELECT 1 FROM $.entries UNION ALL SELECT 1 FROM $.gc_pins')).toEqual([])
      await sql(`DROP TRIGGER refuse ON $.${table}`)
      expect((await catalog.publish([heavy(1)], call()))[0]?.outcome).toBe('created')
    }
  )

  test.each(['entries', 'gc_pins'] as const)(
    'of which it refuses one row (%s) once is done all the same',
    async table => {
      const { catalog, sql } = await refusing(table, 1)
      const outcomes = await catalog.publish([heavy(1), heavy(2), heavy(3)], call())
      expect(outcomes.map(({ outcome }) => outcome)).toEqual(['created', 'created', 'created'])
      expect(await sql('SELECT count(*)::int AS n FROM $.gc_pins')).toEqual([{ n: 3 }])
    }
  )
})
