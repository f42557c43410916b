import { inspect } from 'node:util'
import { expect, test } from 'vitest'
import { ServerError, type Session } from '../src/index.js'
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
    const none = [Buffer.from('hush\n')]
    expect(await refused(session => session.copyIn('COPY public.t FROM STDIN', none))).toMatchObject({ code: '22P02' })
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
    })
    expect(await stored()).toEqual([])
  })

  test('is waited for by what is asked meanwhile, and waits for what was asked before', async () => {
    const { over } = await bench()
    await over.use(call(), async session => {
      const before = session.run('INSERT INTO public.t VALUES (1)')
      const copied = session.copyIn('COPY public.t FROM STDIN', [lines(2, 5)])
      const again = session.copyIn('COPY public.t FROM STDIN', [lines(5, 8)])
      const after = session.rows('SELECT count(*) FROM public.t')
      expect(await Promise.all([before, copied, again, after])).toEqual([1, undefined, undefined, [[7n]]])
    })
  })

  test('that is begun as a statement ends the session, and not the process', async () => {
    const { over } = await bench()
    for (const sql of ['COPY public.t FROM STDIN', 'COPY public.t TO STDOUT']) {
      expect(await codeOf(over.use(call(), session => session.run(sql)))).toBe('transient')
    }
    await expectWorking(over)
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
    const silent = over.use(call(500), session => {
      async function* producer() {
        yield lines(0, 10)
        wire.blackHole()
        yield lines(10, 20)
      }
      return session.copyIn('COPY public.t FROM STDIN', producer())
    })
    expect(await codeOf(silent)).toBe('transient')
    wire.heal()
    await expectWorking(over)
  })
})
