import { createHash } from 'node:crypto'
import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { copiedRows, copyRows, int4, int8, ServerError, type Session } from '../src/index.js'
import { bench, call, codeOf, describeWithServer, expectWorking, terminate } from './fixture.js'

const lines = (from: number, to: number) =>
  Buffer.from(Array.from({ length: to - from }, (_, n) => `${from + n}\n`).join(''))

describeWithServer('a copy', () => {
  test('into the server takes chunks of any cut, and the next statement works', async () => {
    const { over, stored } = await bench()
    const all = lines(0, 5_000)
    await over.transaction(call(), async session => {
      const pieces = Array.from({ length: Math.ceil(all.length / 777) }, (_, n) => all.subarray(n * 777, (n + 1) * 777))
      await session.copyIn('COPY public.t FROM STDIN', [...pieces, Buffer.alloc(0)])
      expect(await session.rows('SELECT count(*) FROM public.t')).toEqual([[5_000n]])
    })
    expect(await stored()).toHaveLength(5_000)
  })

  test('out of the server yields everything, and the next statement works, a hundred times over', async () => {
    const { over } = await bench()
    const sql = `COPY (SELECT repeat('x', 50000) FROM generate_series(1, 20)) TO STDOUT`
    await over.use(call(30_000), async session => {
      for (let round = 0; round < 100; round++) {
        let length = 0
        for await (const chunk of session.copyOut(sql)) length += chunk.length
        expect(length).toBe(20 * 50_001)
        expect(await session.rows('SELECT 1')).toEqual([[1]])
      }
    })
  })

  test('whose producer fails is called off, and its session goes on', async () => {
    const { over, stored } = await bench()
    await over.use(call(), async session => {
      async function* producer() {
        yield lines(0, 10)
        throw new Error('no more')
      }
      await expect(session.copyIn('COPY public.t FROM STDIN', producer())).rejects.toThrow('no more')
      expect(await session.rows('SELECT 1')).toEqual([[1]])
    })
    expect(await stored()).toEqual([])
  })

  test('that the server refuses says why, and neither a value nor the statement', async () => {
    const { db, over } = await bench()
    await db.query('CREATE TABLE public.u (v text UNIQUE)')
    const refused = async (copy: (session: Session) => Promise<unknown>) => {
      const error = await over.use(call(), copy).catch(error => error)
      expect(error).toBeInstanceOf(ServerError)
      expect(inspect(error, { showHidden: true })).not.toMatch(/hush|copy public/i)
      return error
    }
    const twice = [Buffer.from('hush1\nhush1\n')]
    expect(await refused(session => session.copyIn('COPY public.u FROM STDIN', twice))).toMatchObject({ code: '23505' })
    const out = async (session: Session) => {
      for await (const _ of session.copyOut("COPY (SELECT ('hush' || v)::int FROM public.t) TO STDOUT"));
    }
    await db.query('INSERT INTO public.t VALUES (1)')
    expect(await refused(out)).toMatchObject({ code: '22P02' })
    await expectWorking(over)
  })

  test('that the server refuses rejects, at its start, in its middle and at its end', async () => {
    const { db, over, stored } = await bench()
    await db.query('ALTER TABLE public.t ADD CONSTRAINT small CHECK (v < 1000000)')
    await db.query('ALTER TABLE public.t ADD CONSTRAINT once UNIQUE (v) DEFERRABLE INITIALLY DEFERRED')
    await over.use(call(), async session => {
      const copy = (sql: string, chunks: Iterable<Buffer>) => session.copyIn(sql, chunks)
      await expect(copy('COPY public.nothing FROM STDIN', [lines(0, 3)])).rejects.toMatchObject({ code: '42P01' })
      const many = Array.from({ length: 50 }, () => lines(999_990, 1_000_010))
      await expect(copy('COPY public.t FROM STDIN', many)).rejects.toMatchObject({ code: '23514' })
      await expect(copy('COPY public.t FROM STDIN', [lines(0, 3), lines(0, 3)])).rejects.toMatchObject({
        code: '23505'
      })
      expect(await session.rows('SELECT 1')).toEqual([[1]])
      const failing = session.copyOut('COPY (SELECT 1 / (5 - g) FROM generate_series(1, 9) AS g) TO STDOUT')
      await expect(drain(failing)).rejects.toMatchObject({ code: '22012' })
      expect(await session.rows('SELECT 1')).toEqual([[1]])
    })
    expect(await stored()).toEqual([])
  })

  test('that dies with its connection rejects within the deadline', async () => {
    const { db, over, wire } = await bench()
    const killed = over.use(call(), async session => {
      async function* producer() {
        yield lines(0, 10)
        await terminate(db, session.pid)
        for (;;) yield lines(0, 1_000)
      }
      await session.copyIn('COPY public.t FROM STDIN', producer())
    })
    expect(await codeOf(killed)).toBe('transient')
    const silent = over.use(call(500), async session => {
      const rows = session.copyOut(`COPY (SELECT repeat('x', 1000) FROM generate_series(1, 100000)) TO STDOUT`)
      for await (const _ of rows) wire.blackHole()
    })
    expect(await codeOf(silent)).toBe('transient')
    wire.heal()
    await expectWorking(over)
  })

  test('that its consumer leaves costs the session and nothing else', async () => {
    const { over } = await bench()
    const left = over.use(call(), async session => {
      for await (const _ of session.copyOut(`COPY (SELECT generate_series(1, 1000000)) TO STDOUT`)) break
      return 'left'
    })
    expect(['left', 'transient']).toContain(await left.catch(() => 'transient'))
    await expectWorking(over)
  })
})

describeWithServer('binary rows', () => {
  test('come back as they went, whatever their sizes and wherever they are cut', async () => {
    const { db, over } = await bench()
    await db.query('CREATE TABLE public.b (k int4, n int8, v bytea)')
    const sizes = [0, 1, 1_000, 65_535, 65_536, 300_000]
    const rows = sizes.map((size, k) => [int4(k), int8(2n ** 40n + BigInt(k)), k === 2 ? null : Buffer.alloc(size, k)])
    const expected = rows.map(seen)
    await over.use(call(), async session => {
      await session.copyIn('COPY public.b FROM STDIN (FORMAT binary)', copyRows(rows))
      const sql = 'SELECT k, n, v FROM public.b ORDER BY k'
      const asText = await session.rows<[number, bigint, Buffer | null]>(sql)
      expect(asText.map(([k, n, v]) => seen([int4(k), int8(n), v]))).toEqual(expected)
      const whole: Buffer[] = []
      const asBinary: unknown[] = []
      const chunks = session.copyOut(`COPY (${sql}) TO STDOUT (FORMAT binary)`)
      for await (const row of copiedRows(kept(chunks, whole))) asBinary.push(seen(row))
      expect(asBinary).toEqual(expected)
      // Cut anew, in pieces that end anywhere.
      const again: unknown[] = []
      for await (const row of copiedRows(cut(Buffer.concat(whole), 7_001))) again.push(seen(row))
      expect(again).toEqual(expected)
      const one = "COPY (SELECT decode('00275c', 'hex')) TO STDOUT (FORMAT binary)"
      for await (const row of copiedRows(session.copyOut(one))) expect(row).toEqual([Buffer.from([0, 39, 92])])
    })
  })

  test('that end too early, or are none, are a failure', async () => {
    const good: Buffer[] = []
    for await (const chunk of copyRows([[int4(1), Buffer.from('abc')]])) good.push(Buffer.from(chunk))
    const all = Buffer.concat(good)
    for (const bad of [all.subarray(0, 10), all.subarray(0, 30), Buffer.from('x'.repeat(50))]) {
      expect(await codeOf(drain(copiedRows(cut(bad, 8))))).toBe('corrupt')
    }
    expect(await drain(copiedRows(cut(all, 1)))).toBe(1)
  })
})

/** A row's fields by length and digest: comparing bytes one by one would take longer than the calls under test may. */
function seen(row: readonly (Buffer | null)[]): unknown[] {
  return row.map(field => field && [field.length, createHash('sha256').update(field).digest('hex')])
}

async function* kept(chunks: AsyncIterable<Buffer>, into: Buffer[]): AsyncGenerator<Buffer> {
  for await (const chunk of chunks) {
    into.push(Buffer.from(chunk))
    yield chunk
  }
}

async function* cut(bytes: Buffer, length: number): AsyncGenerator<Buffer> {
  for (let at = 0; at < bytes.length; at += length) yield bytes.subarray(at, at + length)
}

async function drain(chunks: AsyncIterable<unknown>): Promise<number> {
  let count = 0
  for await (const _ of chunks) count += 1
  return count
}
