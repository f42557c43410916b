import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { byteaListLiteral, byteaLiteral } from '../src/index.js'
import { bench, call, codeOf, describeWithServer, expectWorking, terminate } from './fixture.js'

describeWithServer('rows in binary form', () => {
  test('are the bytes of each type, NULL among them, in the order of the query', async () => {
    const { over } = await bench()
    const bytes = randomBytes(70_000)
    const rows = await over.use(call(), session =>
      session.binaryRows(`
        SELECT g, CASE WHEN g > 1 THEN ${byteaLiteral(bytes)} END, 'text ' || g, (g * 1000000000000)::bigint
        FROM generate_series(1, 2) AS g ORDER BY g DESC`)
    )
    expect(rows).toHaveLength(2)
    expect(rows[0]?.[0]).toEqual(Buffer.from([0, 0, 0, 2]))
    expect(Buffer.compare(rows[0]?.[1] ?? Buffer.alloc(0), bytes)).toBe(0)
    expect(rows[0]?.[2]?.toString()).toBe('text 2')
    expect(rows[1]?.[1]).toBeNull()
    expect(rows[1]?.[3]?.readBigInt64BE(0)).toBe(1_000_000_000_000n)
  })

  test('may be none, and leave nothing behind that the next ones would meet, in a transaction too', async () => {
    const { over } = await bench()
    const keys = [Buffer.from([1, 0x5c, 0x27]), Buffer.alloc(0), randomBytes(32)]
    await over.transaction(call(), async session => {
      expect(await session.binaryRows('SELECT v FROM public.t')).toEqual([])
      const found = await session.binaryRows(`SELECT k FROM unnest(${byteaListLiteral(keys)}) AS k`)
      expect(found).toEqual(keys.map(key => [key]))
      expect(await session.rows('SELECT name FROM pg_cursors')).toEqual([])
    })
    await over.use(call(), async session => {
      const both = [session.binaryRows('SELECT 1'), session.rows('SELECT 2'), session.binaryRows('SELECT 3')]
      expect((await Promise.all(both)).map(rows => rows.length)).toEqual([1, 1, 1])
    })
  })

  test('that cannot be had reject: a wrong query at once, a session that dies with its death', async () => {
    const { db, over } = await bench()
    await over.use(call(), async session => {
      await expect(session.binaryRows('SELECT v FROM public.nothing')).rejects.toMatchObject({ code: '42P01' })
      await expect(session.binaryRows('SELECT 1 / v FROM (VALUES (1), (0)) AS x (v)')).rejects.toMatchObject({
        code: '22012'
      })
      expect(await session.rows('SELECT 1')).toEqual([[1]])
    })
    const dying = over.use(call(), async session => {
      const asleep = session.binaryRows('SELECT pg_sleep(20)')
      await terminate(db, session.pid)
      return asleep
    })
    expect(await codeOf(dying)).toBe('transient')
    await expectWorking(over)
  })
})
