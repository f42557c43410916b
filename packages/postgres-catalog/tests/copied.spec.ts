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
const heavy = (n: number, length = LENGTH) => inline(n, randomBytes(length), pinned())

/** Counts, past all rollbacks, rows that came by COPY; `refusal` is what each of them meets after that. */
async function watched(refusal = '') {
  const pool = await openPool()
  await pool.sql('CREATE SEQUENCE $.copied')
  await pool.sql(`CREATE FUNCTION $.watch() RETURNS trigger LANGUAGE plpgsql AS $f$ BEGIN
    IF current_query() LIKE 'COPY%' THEN PERFORM nextval('$.copied'); ${refusal} END IF; RETURN NEW; END $f$`)
  await pool.sql('CREATE TRIGGER watch BEFORE INSERT ON $.entries FOR EACH ROW EXECUTE FUNCTION $.watch()')
  const copied = async () => {
    const [row] = await pool.sql<{ n: number }>(
      'SELECT CASE WHEN is_called THEN last_value ELSE 0 END::int AS n FROM $.copied'
    )
    return row?.n
  }
  return { ...pool, copied }
}

describeServer('a publication of many bytes', () => {
  test('copies what is new, and finds, ends and pins the rest in the same transaction', async () => {
    const { catalog, sql, copied } = await watched()
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
    expect(await copied()).toBe(4)
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

  test('of which everything is there copies nothing', async () => {
    const { catalog, copied } = await watched()
    const items = [heavy(1), heavy(2), heavy(3)]
    await catalog.publish(items, call())
    const again = await catalog.publish(items, call())
    expect(again.map(({ outcome }) => outcome)).toEqual(['existed', 'existed', 'existed'])
    expect(await copied()).toBe(3)
  })

  test('whose key somebody else makes between the look and the copy runs again, and finds it', async () => {
    const { catalog, copied, sql } = await watched(`RAISE unique_violation;`)
    const items = [1, 2, 3].map(n => heavy(n, 60_000))
    const outcomes = await catalog.publish(items, call())
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['created', 'created', 'created'])
    // Run one by one, each would have been copied again.
    expect(await copied()).toBe(1)
    expect(await sql('SELECT count(*)::int AS n FROM $.gc_pins')).toEqual([{ n: 3 }])
  })

  test('that the server refuses says why, and leaves nothing', async () => {
    const { catalog, sql } = await watched(`RAISE disk_full;`)
    expect(await failure(catalog.publish([inline(1, randomBytes(100_000), pinned())], call()))).toBe('full')
    expect(await sql('SELECT 1 FROM $.entries UNION ALL SELECT 1 FROM $.gc_pins')).toEqual([])
    expect((await catalog.publish([inline(2)], call()))[0]?.outcome).toBe('created')
  })
})
