import { formatKey, type Lease } from '@alkblobs/core/engine'
import { freshDatabase, type TestDatabase } from '@alkblobs/testkit'
import { expect, onTestFinished, test } from 'vitest'
import { call, describeServer, eventually, inline, leaseOf, locatorOf, openSchema, record, stageOf } from './fixture.js'

const ENTRIES = 3_000
const PAGE = 10
/** What nine calls may read: far more than they need, and far less than the smallest table has. */
const READ_MAX = 500

type Opened = Awaited<ReturnType<typeof openSchema>>['catalog']
const keyOf = (n: number) => formatKey('blake3', Buffer.from(n.toString(16).padStart(64, '0'), 'hex'))
const from = ENTRIES / 2
const some = Array.from({ length: PAGE }, (_, n) => from + n)
const pins = some.map(n => ({ key: keyOf(n), pin: { owner: 'me' as never, generation: 1 } }))
const found = some.map(n => ({
  stage: stageOf(n),
  sealed: { locator: locatorOf(ENTRIES + n), key: keyOf(n), length: 1, whole: true }
}))

/** Calls that look at a page or a few keys; each leaves the tables as they are, or as good as. */
const CALLS: Readonly<Record<string, (catalog: Opened, lease: Lease) => Promise<unknown>>> = {
  list: catalog => catalog.list(keyOf(from), PAGE, call()),
  find: catalog => catalog.find(some.map(keyOf), call()),
  read: catalog => catalog.read(keyOf(from), call()),
  explain: catalog => catalog.explain(keyOf(from), call()),
  publish: catalog =>
    catalog.publish(
      some.map(n => ({ ...inline(1, Buffer.of(1)), key: keyOf(n) })),
      call()
    ),
  pin: catalog =>
    catalog.pin(
      pins.map(pin => ({ ...pin, ttlMs: 60_000 })),
      call()
    ),
  renew: catalog =>
    catalog.renew({ pins, pinTtlMs: 60_000, stages: some.map(stageOf), stageTtlMs: 60_000, revive: true }, call()),
  release: catalog => catalog.release(pins, call()),
  candidates: (catalog, lease) => catalog.candidates(lease, keyOf(from), PAGE, call()),
  stageCandidates: (catalog, lease) => catalog.stageCandidates(lease, some.map(keyOf), call()),
  due: (catalog, lease) => catalog.due(lease, undefined, PAGE, call()),
  mark: catalog => catalog.mark(keyOf(from), call()),
  remove: (catalog, lease) =>
    catalog.remove(
      some.map(n => ({ kind: 'candidate', key: keyOf(n), live: true })),
      0,
      lease,
      call()
    ),
  staged: catalog => catalog.staged(some.map(stageOf), call()),
  unstage: catalog => catalog.unstage(some.map(stageOf), call()),
  trash: catalog => catalog.trash(undefined, PAGE, call()),
  'trash after a name': catalog => catalog.trash(locatorOf(from), PAGE, call()),
  known: catalog => catalog.known(found, call()),
  discard: catalog => catalog.discard(found, call()),
  dropped: catalog =>
    catalog.dropped(
      some.flatMap(n => [{ what: stageOf(n) }, { what: locatorOf(n), retryAfterMs: 0 }]),
      call()
    )
}

/** Rows and entries of indexes that were read so far, by sessions that have said so: at their end at the latest. */
async function readUpToNow({ query }: TestDatabase): Promise<number> {
  const [row] = await query<{ n: string }>(`SELECT (SELECT sum(seq_tup_read) FROM pg_stat_user_tables)
    + (SELECT sum(idx_tup_read) FROM pg_stat_user_indexes) AS n`)
  return Number(row?.n)
}

const OURS = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'pool'"
const WINDOW = `SELECT indexrelname AS index, idx_scan::int AS scans, idx_tup_read::int AS read
  FROM pg_stat_user_indexes WHERE indexrelname = 'gc_window_due'`

const ended = ({ query }: TestDatabase) =>
  eventually('the sessions have ended', async () => (await query(OURS)).length === 0)

/** A pool whose tables nobody counts, as is every pool's in its first minute. */
async function uncounted() {
  const database = await freshDatabase()
  onTestFinished(() => database.drop())
  const at = { url: database.url, schema: 'pool' }
  const made = await openSchema(at)
  await made.catalog.meta.compareAndSet(undefined, record, call())
  await made.close()
  for (const table of ['entries', 'gc_pins', 'gc_window', 'stages', 'trash']) {
    await database.query(`ALTER TABLE pool.${table} SET (autovacuum_enabled = off)`)
  }
  return { database, at }
}

async function grow(database: TestDatabase, count: number): Promise<void> {
  const key = (n: string) => `decode(lpad(to_hex(${n}), 64, '0'), 'hex')`
  const all = `generate_series(0, ${count - 1}) n`
  await database.query(`
    INSERT INTO pool.entries (key, length, body) SELECT ${key('n')}, 1, 'x' FROM ${all} ON CONFLICT DO NOTHING;
    INSERT INTO pool.gc_pins SELECT ${key('n')}, 'other', 1, now() + interval '1 hour' FROM ${all} ON CONFLICT DO NOTHING;
    INSERT INTO pool.gc_window SELECT ${key('n')}, '', now() - interval '1 hour', 0 FROM ${all} WHERE n % 3 = 0 ON CONFLICT DO NOTHING;
    INSERT INTO pool.stages SELECT lpad(to_hex(n), 32, '0'), now() + interval '1 hour' FROM ${all} ON CONFLICT DO NOTHING;
    INSERT INTO pool.trash SELECT lpad(to_hex(n), 32, '0') || '.sealed', NULL, NULL, now() FROM ${all} ON CONFLICT DO NOTHING;
    SELECT pg_stat_force_next_flush()`)
}

describeServer('what a call reads', () => {
  test.each([0, ENTRIES / 10])(
    'does not grow with the pool, though plans were made when it had %i entries',
    async size => {
      const { database, at } = await uncounted()
      const tables = 'pool.entries, pool.gc_pins, pool.gc_window, pool.stages, pool.trash'
      const spent: Record<string, number> = {}
      for (const [name, ask] of Object.entries(CALLS)) {
        await database.query(`TRUNCATE ${tables}`)
        const { catalog, close } = await openSchema(at, { poolMax: 2 })
        const lease = await leaseOf(catalog)
        await grow(database, size)
        // A statement that was said five times may get a plan for good.
        for (let round = 0; round < 8; round++) await ask(catalog, lease)
        await grow(database, ENTRIES)
        const before = await readUpToNow(database)
        await ask(catalog, lease)
        await close()
        await ended(database)
        spent[name] = (await readUpToNow(database)) - before
      }
      expect(Object.entries(spent).filter(([, count]) => count > READ_MAX)).toEqual([])
    },
    120_000
  )

  test('of the window is one page of it: by its keys for candidates, by its times for what is due', async () => {
    const { database, at } = await uncounted()
    await grow(database, 20_000)
    const { catalog, close } = await openSchema(at)
    const lease = await leaseOf(catalog)
    const before = await database.query(WINDOW)
    await catalog.candidates(lease, keyOf(from), 100, call())
    expect((await catalog.due(lease, undefined, 100, call())).keys).toHaveLength(100)
    await close()
    await ended(database)
    expect(before).toEqual([{ index: 'gc_window_due', scans: 0, read: 0 }])
    expect(await database.query(WINDOW)).toEqual([{ index: 'gc_window_due', scans: 1, read: 100 }])
  })
})
