import { expect, test } from 'vitest'
import { type Param, qualified, quoteIdentifier, type Value } from '../src/index.js'
import { bench, call, describeWithServer } from './fixture.js'

describeWithServer('values', () => {
  test('come back as what they are', async () => {
    const { over } = await bench()
    const types = 'bytea, text, int4, int8, bool, float8, oid, bytea'.split(', ')
    const values: Param[] = [
      Buffer.from([0, 1, 255, 92]),
      'a"\\\n\u{1f600}',
      -7,
      2n ** 62n,
      true,
      1.5,
      4_294_967_295,
      null
    ]
    const sql = `SELECT ${types.map((type, n) => `$${n + 1}::${type}`).join(', ')}`
    for (let prepared = 0; prepared < 2; prepared++) {
      const rows = await over.use(call(), session => session.rows<Value[]>(sql, values))
      expect(rows).toEqual([values])
    }
    const [empty] = await over.use(call(), session => session.rows<Value[]>("SELECT ''::bytea, '', false, 0::int8"))
    expect(empty).toEqual([Buffer.alloc(0), '', false, 0n])
  })

  test('of lists arrive whole, whatever is in them', async () => {
    const { over } = await bench()
    const bytes = [Buffer.from([0, 92, 34, 255]), null, Buffer.alloc(0)]
    const texts = ['a"b', 'c\\d', '', 'NULL', null, '{x,y}', ' ']
    const rows = await over.use(call(), async session => [
      ...(await session.rows('SELECT v FROM unnest($1::bytea[]) AS v', [bytes])),
      ...(await session.rows('SELECT v FROM unnest($1::text[]) AS v', [texts])),
      ...(await session.rows('SELECT v FROM unnest($1::int8[], $2::bool[]) AS v(v, w)', [
        [1n, 2n],
        [true, false]
      ])),
      ...(await session.rows('SELECT v FROM unnest($1::int8[]) AS v', [[]]))
    ])
    expect(rows.map(([value]) => value)).toEqual([...bytes, ...texts, 1n, 2n])
  })

  test('of bytes are the bytes of the moment of the call, whatever view they are seen through', async () => {
    const { over } = await bench()
    const wide = new Uint16Array([0x0102, 0x0304])
    const seen = new Uint8Array(wide.buffer, 1, 2)
    const shared = new Uint8Array(new SharedArrayBuffer(4), 2, 2).fill(7)
    const mutable = Buffer.from('before')
    const rows = over.use(call(), session => {
      const asked = session.rows('SELECT $1::bytea, $2::bytea, $3::bytea', [seen, shared, mutable])
      mutable.fill('x')
      return asked
    })
    expect(await rows).toEqual([[Buffer.from(seen), Buffer.from([7, 7]), Buffer.from('before')]])
    const wrong = over.use(call(), session => session.rows('SELECT $1::bytea', [wide as unknown as Uint8Array]))
    await expect(wrong).rejects.toBeInstanceOf(TypeError)
  })

  test('of a statement that a changed table has made stale are served by another session', async () => {
    const { db, over } = await bench({ poolMax: 2 })
    await db.query('INSERT INTO public.t VALUES (1)')
    const ask = () => over.use(call(), session => session.rows('SELECT * FROM public.t WHERE v = $1', [1]))
    expect(await ask()).toEqual([[1]])
    await db.query('ALTER TABLE public.t ADD COLUMN w int DEFAULT 2')
    // The driver prepares it again by itself; in any case the next one works.
    await ask().catch(() => undefined)
    expect(await ask()).toEqual([[1, 2]])
  })
})

describeWithServer('a statement', () => {
  test('tells how many rows it touched, and of several the sum is the last', async () => {
    const { over } = await bench()
    await over.use(call(), async session => {
      expect(await session.run('INSERT INTO public.t SELECT generate_series(1, 5)')).toBe(5)
      expect(await session.run('UPDATE public.t SET v = v + $1 WHERE v > 3', [1])).toBe(2)
      expect(await session.run('DELETE FROM public.t WHERE v < 0')).toBe(0)
      expect(await session.rows('SELECT 1; SELECT 2, 3')).toEqual([[2, 3]])
    })
  })

  test('with more parameters than there may be is refused, and the session goes on', async () => {
    const { over } = await bench()
    await over.use(call(), async session => {
      const most = Array.from({ length: 65_534 }, (_, n) => n)
      await expect(session.rows('SELECT 1', most)).rejects.toThrow(RangeError)
      expect(await session.rows('SELECT 1')).toEqual([[1]])
    })
  })

  test('that fails behind some of its rows leaves nothing of them to the next', async () => {
    const { over } = await bench()
    await over.use(call(), async session => {
      const failing = session.rows('SELECT 1 / (3 - g) FROM generate_series(1, 9) AS g')
      const [next, last] = [session.rows('SELECT 1'), session.rows('SELECT $1::int', [2])]
      await expect(failing).rejects.toMatchObject({ code: '22012' })
      expect(await Promise.all([next, last])).toEqual([[[1]], [[2]]])
    })
  })

  test('is made in a session whose settings are ours', async () => {
    const { db, over } = await bench({ applicationName: "it's\\" })
    await db.query(`ALTER DATABASE ${db.database} SET synchronous_commit = off`)
    await db.query(`ALTER DATABASE ${db.database} SET search_path = public`)
    await db.query(`ALTER DATABASE ${db.database} SET bytea_output = 'escape'`)
    await db.query(`ALTER DATABASE ${db.database} SET standard_conforming_strings = off`)
    const names = ['synchronous_commit', 'search_path', 'TimeZone', 'lock_timeout', 'application_name', 'bytea_output']
    const sql = `SELECT current_setting(n) FROM unnest($1::text[]) AS n`
    const rows = await over.use(call(), session => session.rows(sql, [names]))
    for (const name of ['synchronous_commit', 'search_path', 'bytea_output', 'standard_conforming_strings']) {
      await db.query(`ALTER DATABASE ${db.database} RESET ${name}`)
    }
    expect(rows.flat()).toEqual(['on', 'pg_catalog, pg_temp', 'UTC', '2s', "it's\\", 'hex'])
  })
})

test('A name gets into a statement in quotes, or not at all', () => {
  expect(qualified('a"b', 'c.d')).toBe('"a""b"."c.d"')
  for (const name of ['', 'a\0b', 'x'.repeat(64), 'ü'.repeat(32)]) expect(() => quoteIdentifier(name)).toThrow()
})
