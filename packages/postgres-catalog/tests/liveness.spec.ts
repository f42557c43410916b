import { type Catalog, digestOf } from '@alkblobs/core/engine'
import { freshDatabase, freshRole } from '@alkblobs/testkit'
import { expect, onTestFinished, test, vi } from 'vitest'
import {
  call,
  describeServer,
  digest,
  digestsOf,
  failure,
  inline,
  keyOf,
  leaseOf,
  openPool,
  openSchema,
  record
} from './fixture.js'

/** A database with an application's tables of both kinds, indexed, and a pool with entries 1 to 4. */
async function application() {
  const database = await freshDatabase()
  onTestFinished(() => database.drop())
  await database.query(`
    CREATE TABLE files (id int, blob text); CREATE INDEX ON files (blob);
    CREATE SCHEMA app; CREATE TABLE app."Raw.Files" ("blobKey" bytea); CREATE INDEX ON app."Raw.Files" ("blobKey")`)
  const { catalog } = await openSchema({ url: database.url, schema: 'pool' })
  await catalog.meta.compareAndSet(undefined, record, call())
  await catalog.publish(
    [1, 2, 3, 4].map(n => inline(n)),
    call()
  )
  return { database, catalog }
}

const FILES = { table: 'files', column: 'blob' }
const RAW = { table: 'app."Raw.Files"', column: 'blobKey' }
const register = (catalog: Catalog, source: { table: string; column: string }) =>
  failure((catalog.sqlLiveness as NonNullable<Catalog['sqlLiveness']>).register(source, call()))

describeServer('a table that names live keys', () => {
  test('protects in candidates and in removal, as text and as bytes; NULL says nothing', async () => {
    const { database, catalog } = await application()
    await database.query('INSERT INTO files (blob) VALUES ($1), (NULL), ($2)', [keyOf(1), keyOf(99)])
    await database.query('INSERT INTO app."Raw.Files" VALUES ($1), (NULL)', [digest(2)])
    expect([await register(catalog, FILES), await register(catalog, RAW)]).toEqual(['resolved', 'resolved'])
    const lease = await leaseOf(catalog)
    const page = await catalog.candidates(lease, undefined, 9, call())
    expect([page.live, page.keys]).toEqual([2, [keyOf(3), keyOf(4)]])
    await catalog.stageCandidates(lease, page.keys, call())
    await database.query('INSERT INTO files (blob) VALUES ($1)', [keyOf(3)])
    const items = page.keys.map(key => ({ kind: 'candidate', key, live: false }) as const)
    const outcomes = await catalog.remove(items, 0, lease, call())
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['cancelled', 'deleted'])
  })

  test('protects from a direct delete, and is named', async () => {
    const { database, catalog } = await application()
    await database.query('INSERT INTO files (blob) VALUES ($1)', [keyOf(1)])
    await register(catalog, FILES)
    await register(catalog, RAW)
    expect(await catalog.sqlLiveness?.liveBy(keyOf(1), call())).toEqual(['files.blob'])
    expect(await catalog.sqlLiveness?.liveBy(keyOf(2), call())).toEqual([])
    for (const [n, expected] of [
      [1, 'cancelled'],
      [2, 'deleted']
    ] as const) {
      const marked = await catalog.mark(keyOf(n), call())
      if (typeof marked === 'string') throw new Error(marked)
      const item = { kind: 'marked', key: keyOf(n), mark: marked.mark, live: false } as const
      expect((await catalog.remove([item], 0, undefined, call()))[0]?.outcome).toBe(expected)
    }
  })

  test('is registered once however often, and judged no more once it is taken out', async () => {
    const { database, catalog } = await application()
    await database.query('INSERT INTO files (blob) VALUES ($1)', [keyOf(1)])
    await register(catalog, FILES)
    await register(catalog, { table: 'public.files', column: 'blob' })
    const lease = await leaseOf(catalog)
    expect((await catalog.candidates(lease, undefined, 9, call())).live).toBe(1)
    catalog.sqlLiveness?.unregister(FILES)
    expect((await catalog.candidates(lease, undefined, 9, call())).live).toBe(0)
    await database.query('DROP TABLE files')
    expect((await catalog.candidates(lease, undefined, 9, call())).live).toBe(0)
  })

  test('without an index is reported', async () => {
    const { database, catalog } = await application()
    await database.query('CREATE TABLE slow (blob text)')
    const warned = vi.spyOn(process, 'emitWarning').mockImplementation(() => undefined)
    onTestFinished(() => warned.mockRestore())
    expect(await register(catalog, { table: 'slow', column: 'blob' })).toBe('resolved')
    expect(warned.mock.calls.map(([message]) => message)).toEqual([expect.stringContaining('slow.blob')])
  })
})

describeServer('a table that cannot be trusted', () => {
  test('is refused at registration: not there, no table, temporary, of another type, with values that are no keys', async () => {
    const { database, catalog } = await application()
    await database.query(`
      CREATE VIEW v AS SELECT blob FROM files; CREATE TABLE numbers (blob int);
      CREATE TABLE short (blob bytea); INSERT INTO short VALUES ('\\x00');
      CREATE TABLE typo (blob text); CREATE TABLE upper (blob text); CREATE TABLE sha (blob text)`)
    await database.query('INSERT INTO typo VALUES ($1)', [`${keyOf(1)} `])
    await database.query('INSERT INTO upper VALUES ($1)', [keyOf(0xabc).toUpperCase()])
    await database.query('INSERT INTO sha VALUES ($1)', [keyOf(1).replace('blake3', 'sha256')])
    const tables = [
      'absent',
      'absent.files',
      'v',
      'numbers',
      'short',
      'typo',
      'upper',
      'sha',
      '',
      'a.b.c',
      '"x',
      'a..b'
    ]
    const codes = await Promise.all(tables.map(table => register(catalog, { table, column: 'blob' })))
    expect(codes).toEqual(tables.map(() => 'liveness'))
    expect(await register(catalog, { table: 'files', column: 'absent' })).toBe('liveness')
    expect(await register(catalog, { table: 'files', column: 'ctid' })).toBe('liveness')
    expect(await catalog.sqlLiveness?.liveBy(keyOf(1), call())).toEqual([])
  })

  test('is refused for one text that is no key among many that are, whatever is wrong with it', async () => {
    const { database, catalog } = await application()
    const key = keyOf(0xabcdef)
    const values = {
      'a capital digit': key.replace('ab', 'Ab'),
      'a letter that is no digit': key.replace('ab', 'gb'),
      'a character of two bytes': `${key.slice(0, -2)}é`,
      'a space in the middle': key.replace('ab', 'a '),
      'a line break at the end': `${key.slice(0, -1)}\n`,
      'two spaces in place of digits': key.replace('abcd', 'ab  '),
      'another separator': key.replace(':', '-'),
      'a capital algorithm': key.replace('blake3', 'BLAKE3'),
      'a digit less': key.slice(0, -1),
      'a digit more': `${key}0`,
      'nothing in it': ''
    }
    await database.query('INSERT INTO files (blob) SELECT $1 FROM generate_series(1, 100)', [key])
    await register(catalog, FILES)
    const lease = await leaseOf(catalog)
    for (const [what, value] of Object.entries(values)) {
      await database.query('INSERT INTO files (id, blob) VALUES (1, $1)', [value])
      expect(await register((await openSchema({ url: database.url, schema: 'pool' })).catalog, FILES), what).toBe(
        'liveness'
      )
      expect(await failure(catalog.candidates(lease, undefined, 9, call())), what).toBe('liveness')
      await database.query('DELETE FROM files WHERE id = 1')
    }
    expect(lease.lost.aborted).toBe(false)
    expect((await catalog.candidates(lease, undefined, 9, call())).keys).toHaveLength(4)
  })

  test('is refused where the server hides rows from the role, or does not let it read', async () => {
    const { database } = await application()
    const role = await freshRole(database)
    onTestFinished(() => role.drop())
    await database.query(`CREATE SCHEMA mine AUTHORIZATION ${role.name}`)
    await database.query(`CREATE TABLE secret (blob text)`)
    await database.query(`CREATE TABLE hidden (blob text); ALTER TABLE hidden ENABLE ROW LEVEL SECURITY;
      GRANT SELECT ON hidden TO ${role.name}`)
    await database.query(`GRANT SELECT ON files TO ${role.name}`)
    const url = `postgres://${role.name}:${role.password}@${database.host}:${database.port}/${database.database}`
    const { catalog } = await openSchema({ url, schema: 'mine' })
    await catalog.meta.compareAndSet(undefined, record, call())
    expect(await register(catalog, { table: 'secret', column: 'blob' })).toBe('liveness')
    expect(await register(catalog, { table: 'hidden', column: 'blob' })).toBe('liveness')
    expect(await register(catalog, FILES)).toBe('resolved')
    const lease = await leaseOf(catalog)
    await database.query('ALTER TABLE files ENABLE ROW LEVEL SECURITY')
    expect(await failure(catalog.candidates(lease, undefined, 9, call()))).toBe('liveness')
  })

  test.each([
    ['dropped', 'DROP TABLE files'],
    ['replaced', 'ALTER TABLE files RENAME TO old; CREATE TABLE files (id int, blob text)'],
    ['without its column', 'ALTER TABLE files DROP COLUMN blob'],
    ['of another type', 'ALTER TABLE files ALTER COLUMN blob TYPE bytea USING blob::bytea'],
    ['with a typo', "INSERT INTO files (blob) VALUES ('blake3:abc')"]
  ])('after registration, because it was %s, stops the sweep and changes nothing', async (how, change) => {
    const { database, catalog } = await application()
    await register(catalog, FILES)
    const first = await leaseOf(catalog)
    await catalog.stageCandidates(first, [keyOf(1)], call())
    await first.release()
    const lease = await leaseOf(catalog)
    await database.query(change)
    const item = { kind: 'candidate', key: keyOf(1), live: false } as const
    expect(await failure(catalog.candidates(lease, undefined, 9, call()))).toBe('liveness')
    expect(await failure(catalog.remove([item], 0, lease, call()))).toBe('liveness')
    if (how !== 'with a typo') {
      const marked = await catalog.mark(keyOf(2), call())
      if (typeof marked === 'string') throw new Error(marked)
      const direct = { kind: 'marked', key: keyOf(2), mark: marked.mark, live: false } as const
      expect(await failure(catalog.remove([direct], 0, undefined, call()))).toBe('liveness')
    }
    expect(lease.lost.aborted).toBe(false)
    expect(await database.query('SELECT count(*)::int AS n FROM pool.entries')).toEqual([{ n: 4 }])
    expect(await database.query("SELECT count(*)::int AS n FROM pool.gc_window WHERE mark = ''")).toEqual([{ n: 1 }])
  })
})

describeServer('the application', () => {
  test('finds its tables, roles and settings as it left them', async () => {
    const { database, catalog } = await application()
    const picture = `
      SELECT n.nspname || '.' || c.relname AS name, c.relkind::text, c.xmin::text FROM pg_class c
      JOIN pg_namespace n ON n.oid = c.relnamespace WHERE n.nspname IN ('public', 'app') ORDER BY 1`
    const before = await database.query(picture)
    await database.query('INSERT INTO files (blob) VALUES ($1)', [keyOf(1)])
    await register(catalog, FILES)
    await register(catalog, RAW)
    const lease = await leaseOf(catalog)
    await lease.live?.add(digestsOf([2]), call())
    const { keys } = await catalog.candidates(lease, undefined, 9, call())
    await catalog.stageCandidates(lease, keys, call())
    await catalog.remove(
      keys.map(key => ({ kind: 'candidate', key, live: false }) as const),
      0,
      lease,
      call()
    )
    await lease.release()
    expect(await database.query(picture)).toEqual(before)
    expect(await database.query('SELECT blob FROM files')).toEqual([{ blob: keyOf(1) }])
    expect(await database.query("SELECT 1 FROM pg_class WHERE relname = 'alkblobs_live'")).toEqual([])
  })
})

describeServer('keys that enumerating sources called live', () => {
  test('are live in candidates and removal under that lease, and under no other', async () => {
    const { catalog } = await openPool()
    await catalog.publish(
      [1, 2, 3].map(n => inline(n)),
      call()
    )
    const first = await leaseOf(catalog)
    await catalog.stageCandidates(first, [1, 2, 3].map(keyOf), call())
    await first.release()
    const lease = await leaseOf(catalog)
    await lease.live?.add(digestsOf([]), call())
    await lease.live?.add(digestsOf([1, 77]), call())
    await lease.live?.add(digestsOf([1, 2]), call())
    const items = [1, 3].map(n => ({ kind: 'candidate', key: keyOf(n), live: false }) as const)
    const outcomes = await catalog.remove(items, 0, lease, call())
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['cancelled', 'deleted'])
    expect((await catalog.candidates(lease, undefined, 9, call())).live).toBe(2)
    await lease.release()
    const next = await leaseOf(catalog)
    expect((await catalog.candidates(next, undefined, 9, call())).live).toBe(0)
  })

  test('stay with core where the role may not make temporary tables', async () => {
    const database = await freshDatabase()
    onTestFinished(() => database.drop())
    await database.query(`REVOKE TEMPORARY ON DATABASE ${database.database} FROM PUBLIC`)
    const role = await freshRole(database)
    onTestFinished(() => role.drop())
    await database.query(`CREATE SCHEMA mine AUTHORIZATION ${role.name}`)
    const url = `postgres://${role.name}:${role.password}@${database.host}:${database.port}/${database.database}`
    const { catalog } = await openSchema({ url, schema: 'mine' })
    const lease = await leaseOf(catalog)
    expect(lease.live).toBeUndefined()
  })

  test('and a hundred thousand entries meet no limit, and exactly what is dead goes', async () => {
    const { catalog } = await openPool({ poolMax: 4 })
    const keys = Array.from({ length: 100_000 }, (_, n) => keyOf(n))
    const some = (from: number, to: number) =>
      Array.from({ length: to - from }, (_, i) => inline(from + i, Buffer.of(1)))
    for (let at = 0; at < keys.length; at += 20_000) await catalog.publish(some(at, at + 20_000), call(60_000))
    expect((await catalog.find(keys, call(30_000))).filter(entry => entry !== undefined)).toHaveLength(100_000)
    const pins = keys.map(key => ({ key, pin: { owner: 'me' as never, generation: 1 } }))
    expect(
      await catalog.renew({ pins, pinTtlMs: 1, stages: [], stageTtlMs: 1, revive: true }, call(30_000))
    ).toHaveProperty('pins.length', 100_000)
    await catalog.release(pins, call(30_000))
    const dead = new Set(keys.filter((_, n) => n % 100 === 7))
    let deleted = 0
    for (let sweep = 0; sweep < 2; sweep++) {
      const lease = await leaseOf(catalog)
      const live = keys.filter(key => !dead.has(key))
      for (let at = 0; at < live.length; at += 1_000)
        await lease.live?.add(Buffer.concat(live.slice(at, at + 1_000).map(digestOf)), call())
      const due = await catalog.due(lease, undefined, 5_000, call())
      const items = due.keys.map(key => ({ kind: 'candidate', key, live: false }) as const)
      if (items.length > 0) {
        const outcomes = await catalog.remove(items, 0, lease, call(30_000))
        deleted += outcomes.filter(({ outcome }) => outcome === 'deleted').length
      }
      for (let after: string | undefined, more = true; more; more = after !== undefined) {
        const page = await catalog.candidates(lease, after, 1_000, call(30_000))
        if (page.keys.length > 0) await catalog.stageCandidates(lease, page.keys, call())
        after = page.next
      }
      await lease.release()
    }
    expect(deleted).toBe(1_000)
    expect((await catalog.usage(call())).kv.entries).toBe(99_000)
  }, 120_000)
})

describeServer('a look without a lease', () => {
  test('judges by pins and tables, and finds a typo with its first page', async () => {
    const { database, catalog } = await application()
    await database.query('INSERT INTO files (blob) VALUES ($1)', [keyOf(1)])
    await register(catalog, FILES)
    const lease = await leaseOf(catalog)
    await lease.live?.add(digestsOf([2]), call())
    const page = await catalog.candidates(undefined, undefined, 1, call())
    expect([page.live, page.keys, page.next]).toEqual([1, [keyOf(2)], keyOf(2)])
    await database.query("INSERT INTO files (blob) VALUES ('blake3:abc')")
    expect(await failure(catalog.candidates(undefined, page.next, 9, call()))).toBe('resolved')
    expect(await failure(catalog.candidates(undefined, undefined, 9, call()))).toBe('liveness')
  })
})
