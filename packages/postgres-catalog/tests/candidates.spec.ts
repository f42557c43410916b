import type { CandidatePage, Catalog, Lease } from '@alkblobs/core/engine'
import { freshDatabase } from '@alkblobs/testkit'
import { expect, onTestFinished, test, vi } from 'vitest'
import { call, describeServer, digest, digestsOf, keyOf, leaseOf, openSchema, record } from './fixture.js'

const ENTRIES = 3_000
/** Entries that a sweep may meet, by the remainder of their number by a prime. */
const PRIME = 11
const is = (remainder: number) => (n: number) => n % PRIME === remainder
const isPinned = is(0)
const isWaiting = is(2)
const isCancelled = is(3)
const isReferenced = is(4)
const isLive = is(5)
/** Some of those that wait are pinned as well. */
const isBoth = (n: number) => n % (PRIME * 7) === 2
const numbers = Array.from({ length: ENTRIES }, (_, n) => n)
const key = (n: string) => `decode(lpad(to_hex(${n}), 8, '0') || repeat('0', 56), 'hex')`
const all = `generate_series(0, ${ENTRIES - 1}) n`

/** A pool of entries of all sorts, and a table of the application. */
async function pool(table: string) {
  const database = await freshDatabase()
  onTestFinished(() => database.drop())
  const { catalog } = await openSchema({ url: database.url, schema: 'pool' })
  await catalog.meta.compareAndSet(undefined, record, call())
  await database.query(`
    INSERT INTO pool.entries (key, length, body) SELECT ${key('n')}, 1, 'x' FROM ${all};
    INSERT INTO pool.gc_pins SELECT ${key('n')}, 'a', 1, now() + interval '1 hour' FROM ${all} WHERE n % ${PRIME} = 0 OR n % ${PRIME * 7} = 2;
    INSERT INTO pool.gc_pins SELECT ${key('n')}, 'b', 1, now() - interval '1 hour' FROM ${all} WHERE n % ${PRIME} IN (0, 1);
    INSERT INTO pool.gc_window SELECT ${key('n')}, '', now(), 0 FROM ${all} WHERE n % ${PRIME} = 2;
    INSERT INTO pool.gc_window SELECT ${key('n')}, 'mark', now(), 0 FROM ${all} WHERE n % ${PRIME} IN (1, 2, 3);
    INSERT INTO pool.gc_window SELECT ${key('n')}, '', now(), 0, true FROM ${all} WHERE n % ${PRIME} = 3;
    INSERT INTO pool.gc_window SELECT ${key('n')}, '', now(), 0 FROM generate_series(${ENTRIES}, ${ENTRIES + 9}) n;
    ${table}`)
  return { database, catalog }
}

async function sweepOf(catalog: Catalog, lease: Lease | undefined, limit: number) {
  const sum = { scanned: 0, live: 0, alreadyStaged: 0, cancelled: [] as string[], keys: [] as string[] }
  let after: string | undefined
  for (;;) {
    const page: CandidatePage = await catalog.candidates(lease, after, limit, call())
    expect(page.keys.length + page.cancelled.length).toBeLessThanOrEqual(limit)
    expect(page.scanned).toBe(page.live + page.alreadyStaged + page.keys.length)
    sum.scanned += page.scanned
    sum.live += page.live
    sum.alreadyStaged += page.alreadyStaged
    sum.cancelled.push(...page.cancelled)
    sum.keys.push(...page.keys)
    if (page.next === undefined) return sum
    // Every page but the last has as many as may be, or has looked at more than that.
    expect(page.scanned).toBeGreaterThanOrEqual(limit)
    after = page.next
  }
}

function expected(live: (n: number) => boolean) {
  const unprotected = numbers.filter(n => !isPinned(n) && !isBoth(n) && !live(n))
  const keys = unprotected.filter(n => !isWaiting(n) && !isCancelled(n))
  return {
    scanned: ENTRIES,
    live: ENTRIES - unprotected.length,
    alreadyStaged: unprotected.length - keys.length,
    cancelled: unprotected.filter(isCancelled).map(keyOf),
    keys: keys.map(keyOf)
  }
}

const REFERENCES = `SELECT k FROM (SELECT ${key('n')} AS k FROM ${all} WHERE n % ${PRIME} = 4) x`
const TEXTS = `SELECT 'blake3:' || encode(k, 'hex') FROM (${REFERENCES}) y`
const ordered = (rest: string) => `CREATE TABLE files (blob bytea); INSERT INTO files ${REFERENCES};
  INSERT INTO files ${REFERENCES}; INSERT INTO files VALUES (NULL), ('\\x${'ff'.repeat(32)}'); ${rest}`

const TABLES: Readonly<Record<string, string>> = {
  'bytes in order': ordered('CREATE INDEX ON files (blob)'),
  'bytes in order, downwards': ordered('CREATE INDEX ON files (blob DESC NULLS LAST)'),
  'bytes in a hash': ordered('CREATE INDEX ON files USING hash (blob)'),
  'bytes of which a part is in order': ordered("CREATE INDEX ON files (blob) WHERE blob > '\\x00000800'"),
  'bytes in no order': ordered(''),
  'bytes in parts': `CREATE TABLE files (blob bytea, part int) PARTITION BY LIST (part); CREATE INDEX ON files (blob);
    CREATE TABLE one PARTITION OF files FOR VALUES IN (1); CREATE TABLE two PARTITION OF files DEFAULT;
    INSERT INTO files SELECT k, get_byte(k, 3) % 2 FROM (${REFERENCES}) z`,
  'texts in order': `CREATE TABLE files (blob text); INSERT INTO files ${TEXTS}; CREATE INDEX ON files (blob)`,
  'texts in no order': `CREATE TABLE files (blob text); INSERT INTO files ${TEXTS}; INSERT INTO files VALUES (NULL)`
}

describeServer('candidates of all sorts', () => {
  test.each(Object.entries(TABLES))(
    'are told apart beside a table of %s, whether live keys have an order or none',
    async (_, table) => {
      const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
      onTestFinished(() => warned.mockRestore())
      const { catalog } = await pool(table)
      const lease = await leaseOf(catalog)
      expect(await sweepOf(catalog, lease, 1_000)).toEqual(expected(() => false))
      await catalog.sqlLiveness?.register({ table: 'files', column: 'blob' }, call())
      expect(await sweepOf(catalog, lease, 100)).toEqual(expected(isReferenced))
      const live = numbers.filter(isLive)
      await lease.live?.add(digestsOf([...live, ENTRIES + 1, ...live, ENTRIES + 20]), call())
      for (const limit of [37, 1_000]) {
        expect(await sweepOf(catalog, lease, limit)).toEqual(expected(n => isReferenced(n) || isLive(n)))
      }
      // Asked for one by one, they are put in order.
      await catalog.remove([{ kind: 'candidate', key: keyOf(ENTRIES + 50), live: false }], 0, lease, call())
      for (const limit of [37, 1_000]) {
        expect(await sweepOf(catalog, lease, limit)).toEqual(expected(n => isReferenced(n) || isLive(n)))
      }
      await lease.release()
      expect(await sweepOf(catalog, undefined, 500)).toEqual(expected(isReferenced))
    },
    60_000
  )

  test('are as many as are asked for though all are, and a pin that was taken a moment ago counts', async () => {
    const { database, catalog } = await pool('TRUNCATE pool.gc_window, pool.gc_pins')
    const lease = await leaseOf(catalog)
    expect(await sweepOf(catalog, lease, 100)).toMatchObject({ scanned: ENTRIES, live: 0, keys: numbers.map(keyOf) })
    await database.query("INSERT INTO pool.gc_pins VALUES ($1, 'c', 1, now() + interval '1 hour')", [digest(7)])
    expect((await sweepOf(catalog, lease, 1_000)).keys).toEqual(numbers.filter(n => n !== 7).map(keyOf))
  })

  test('are none where all are protected, and a step looks at more entries than it may answer', async () => {
    const { catalog } = await pool(`TRUNCATE pool.gc_window, pool.gc_pins;
      INSERT INTO pool.gc_pins SELECT ${key('n')}, 'a', 1, now() + interval '1 hour' FROM ${all}`)
    const lease = await leaseOf(catalog)
    const first = await catalog.candidates(lease, undefined, 100, call())
    const step = { alreadyStaged: 0, cancelled: [], keys: [] }
    expect(first).toEqual({ ...step, scanned: 800, live: 800, next: keyOf(799) })
    expect(await sweepOf(catalog, lease, 100)).toEqual({ ...step, scanned: ENTRIES, live: ENTRIES })
    const whole = await catalog.candidates(lease, undefined, 1_000, call())
    expect(whole).toEqual({ ...step, scanned: ENTRIES, live: ENTRIES, next: undefined })
  })
})
