import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import { copyLongRows, int4, int8, oid } from '../src/index.js'
import { bench, call, describeWithServer } from './fixture.js'

describeWithServer('a copy of long fields', () => {
  test('is of the rows as they are, NULL and short fields among them', async () => {
    const { db, over } = await bench()
    await db.query('CREATE TABLE public.b (n int, at bigint, o oid, bytes bytea)')
    const bodies = [randomBytes(100_000), randomBytes(5), Buffer.alloc(0), null, randomBytes(4_096)]
    async function* rows() {
      for (const [n, bytes] of bodies.entries()) yield [int4(n), int8(2n ** 40n), oid(4_000_000_000), bytes]
    }
    await over.use(call(), session => session.copyIn('COPY public.b FROM STDIN (FORMAT binary)', copyLongRows(rows())))
    const found = await db.query<{ n: number; at: string; o: number; bytes: Buffer | null }>(
      'SELECT * FROM public.b ORDER BY n'
    )
    expect(found.map(({ at, o }) => [at, Number(o)])).toEqual(bodies.map(() => [`${2n ** 40n}`, 4_000_000_000]))
    for (const [n, { bytes }] of found.entries()) expect(bytes).toEqual(bodies[n])
  })

  test('leaves a row to its maker when the next one is asked for, and not before', async () => {
    const { db, over } = await bench()
    await db.query('CREATE TABLE public.b (bytes bytea)')
    const shared = Buffer.alloc(1_000_000)
    async function* rows() {
      for (const value of [1, 2, 3]) yield [shared.fill(value)]
    }
    await over.use(call(), session => session.copyIn('COPY public.b FROM STDIN (FORMAT binary)', copyLongRows(rows())))
    const found = await db.query<{ n: number }>(
      "SELECT get_byte(bytes, 0) AS n FROM public.b WHERE bytes = decode(repeat(encode(substring(bytes FROM 1 FOR 1), 'hex'), 1000000), 'hex') ORDER BY 1"
    )
    expect(found.map(({ n }) => n)).toEqual([1, 2, 3])
  })
})
