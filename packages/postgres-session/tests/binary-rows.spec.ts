import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { byteaArray, float8Array, int4Array, int8, int8Array, textArray } from '../src/index.js'
import { bench, call, codeOf, describeWithServer, expectWorking, terminate } from './fixture.js'

describeWithServer('rows in binary form', () => {
  test('are the bytes of each type, NULL among them, in the order of the query', async () => {
    const { over } = await bench()
    const bytes = randomBytes(70_000)
    const text = `
      SELECT g, CASE WHEN g > 1 THEN $1::bytea END, 'text ' || g, (g * 1000000000000)::bigint
      FROM generate_series(1, 2) AS g ORDER BY g DESC`
    const rows = await over.use(call(), session => session.binaryRows({ text, params: [bytes] }))
    expect(rows).toHaveLength(2)
    expect(rows[0]?.[0]).toEqual(Buffer.from([0, 0, 0, 2]))
    expect(Buffer.compare(rows[0]?.[1] ?? Buffer.alloc(0), bytes)).toBe(0)
    expect(rows[0]?.[2]?.toString()).toBe('text 2')
    expect(rows[1]?.[1]).toBeNull()
    expect(rows[1]?.[3]?.readBigInt64BE(0)).toBe(1_000_000_000_000n)
  })

  test('come whole however they are cut, and into the room that is made for them', async () => {
    const { over } = await bench()
    const lengths = [0, 1, 4_095, 4_096, 65_536, 300_000, 0, 1_000_000]
    const pieces = lengths.map(length => randomBytes(length))
    const whole = Buffer.alloc(pieces.reduce((sum, { length }) => sum + length, 0))
    const room = () => {
      let at = 0
      return (column: number, length: number) => {
        if (column === 0) return Buffer.alloc(length)
        at += length
        return whole.subarray(at - length, at)
      }
    }
    const text = 'SELECT n, k FROM unnest($1::bytea[]) WITH ORDINALITY AS i (k, n) ORDER BY n'
    for (let round = 0; round < 2; round++) {
      whole.fill(0)
      const rows = await over.use(call(), session => session.binaryRows({ text, params: [byteaArray(pieces)], room }))
      expect(rows.map(([, bytes]) => bytes?.length)).toEqual(lengths)
      expect(Buffer.compare(whole, Buffer.concat(pieces))).toBe(0)
    }
  })

  test('are asked for with arrays of any length, and one value in pieces', async () => {
    const { over } = await bench()
    await over.use(call(), async session => {
      const text = `SELECT array_length($1::text[], 1), $2::integer[] IS NOT DISTINCT FROM '{7,NULL,-1}',
        $3::bigint[] = '{1,9007199254740993}', $4::float8[] = '{0.5}', $5::bytea = 'abcd', $6::bytea[] = '{}', $7::bigint IS NULL`
      const params = [
        textArray(['é"\\', '']),
        int4Array([7, null, -1]),
        int8Array([1, 9007199254740993n]),
        float8Array([0.5]),
        [Buffer.from('ab'), Buffer.from('cd')],
        byteaArray([]),
        null
      ]
      const yes = Buffer.from([1])
      const [row] = await session.binaryRows({ text, params })
      expect(row).toEqual([Buffer.from([0, 0, 0, 2]), yes, yes, yes, yes, yes, yes])
    })
  })

  test('may be none, and run in order with everything else, in a transaction too', async () => {
    const { over } = await bench()
    await over.transaction(call(), async session => {
      expect(await session.binaryRows({ text: 'SELECT v FROM public.t' })).toEqual([])
      const all = await Promise.all([
        session.run('INSERT INTO public.t VALUES (1)'),
        session.binaryRows({ text: 'SELECT v FROM public.t' }),
        session.run('INSERT INTO public.t VALUES ($1::int)', [2]),
        session.binaryRows({ text: 'SELECT v FROM public.t' }),
        session.binaryRows({ text: 'SELECT v + $1::bigint FROM public.t', params: [int8(1)] }),
        session.rows('SELECT v FROM public.t')
      ])
      expect(all.map(each => (typeof each === 'number' ? each : each.length))).toEqual([1, 1, 1, 2, 2, 2])
    })
  })

  test('that cannot be had reject: a wrong query at once, a session that dies with its death', async () => {
    const { db, over } = await bench()
    await over.use(call(), async session => {
      const wrong = session.binaryRows({ text: 'SELECT v FROM public.nothing' })
      await expect(wrong).rejects.toMatchObject({ code: '42P01', message: expect.stringContaining('nothing') })
      const halfWrong = session.binaryRows({ text: 'SELECT 1 / v FROM (VALUES (1), (0)) AS x (v)' })
      await expect(halfWrong).rejects.toMatchObject({ code: '22012', severity: 'ERROR' })
      expect(await session.rows('SELECT 1')).toEqual([[1]])
    })
    const dying = over.use(call(), async session => {
      const asleep = session.binaryRows({ text: 'SELECT pg_sleep(20)' })
      await terminate(db, session.pid)
      return asleep
    })
    expect(await codeOf(dying)).toBe('transient')
    await expectWorking(over)
  })

  test('of a table that has changed since the query was prepared are those of the table as it is', async () => {
    const { db, over } = await bench()
    await over.use(call(), async session => {
      const text = 'SELECT * FROM public.t'
      expect(await session.binaryRows({ text })).toEqual([])
      await db.query("ALTER TABLE public.t ADD w text DEFAULT 'new'")
      await db.query('INSERT INTO public.t VALUES (5)')
      expect(await session.binaryRows({ text })).toEqual([[Buffer.from([0, 0, 0, 5]), Buffer.from('new')]])
      await session.run('DEALLOCATE ALL')
      expect(await session.binaryRows({ text })).toHaveLength(1)
    })
  })

  test("are not asked for a second time once the session is somebody else's", async () => {
    const { db, over } = await bench()
    const text = 'SELECT * FROM public.t'
    await over.use(call(), session => session.binaryRows({ text }))
    await db.query("ALTER TABLE public.t ADD w text DEFAULT 'new'")
    const asked: Promise<unknown>[] = []
    const left = over.use(call(), async session => {
      asked.push(session.binaryRows({ text }))
      throw new Error('left')
    })
    await expect(left).rejects.toThrow('left')
    await over.transaction(call(), async session => {
      await session.run('DROP TABLE public.t')
      expect(await session.rows('SELECT 1')).toEqual([[1]])
    })
    await expect(asked[0]).rejects.toMatchObject({ code: '0A000' })
    await expectWorking(over)
  })

  test('that are under way when the sessions are closed still come', async () => {
    const { over } = await bench()
    const text = "SELECT 'late' FROM pg_sleep(0.3)"
    const late = over.use(call(), async session => {
      const asked = session.binaryRows({ text })
      void over.close()
      return asked
    })
    expect(await late).toEqual([[Buffer.from('late')]])
    expect(await codeOf(over.use(call(), session => session.binaryRows({ text })))).toBe('transient')
  })
})
