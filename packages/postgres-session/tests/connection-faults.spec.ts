import { expect, test } from 'vitest'
import { type Session, Sessions } from '../src/index.js'
import {
  ASLEEP,
  addressOf,
  bench,
  call,
  codeOf,
  database,
  describeWithServer,
  eventually,
  expectWorking,
  sessions,
  sleep,
  sooner,
  terminate,
  until
} from './fixture.js'
import { listen } from './wire.js'

describeWithServer('a backend that is killed', () => {
  test('while its held session is idle ends that session, and what is asked of it later rejects', async () => {
    const { db, over } = await bench()
    const held = await over.hold(call())
    await terminate(db, held.pid)
    expect(await codeOf(held.rows('SELECT 1'))).toBe('transient')
    expect(held.lost.aborted).toBe(true)
    expect(await codeOf(held.run('SELECT 1'))).toBe('transient')
    await held.release()
    await expectWorking(over)
  })

  test('while its held session waits for nothing tells the holder by itself', async () => {
    const { db, over } = await bench()
    const held = await over.hold(call())
    const lost = new Promise(resolve => held.lost.addEventListener('abort', resolve))
    await terminate(db, held.pid)
    await lost
    await expectWorking(over)
  })

  test('while idle in the pool costs the next caller nothing', async () => {
    const { db, over, wire } = await bench()
    for (const work of ['use', 'transaction'] as const) {
      const [[pid]] = (await over.use(call(), session => session.rows<[number]>('SELECT pg_backend_pid()'))) as [
        [number]
      ]
      await terminate(db, pid)
      // The end of the connection arrives by itself, and is answered by hanging up; a transaction need not even wait for it.
      if (work === 'use') await eventually('our side hung up', () => wire.lines.size === 0)
      expect(await over[work](call(), session => session.rows('SELECT 1'))).toEqual([[1]])
    }
  })

  test('during a statement of a transaction rolls back, and nothing of the transaction runs anywhere else', async () => {
    const { db, over, stored } = await bench()
    // One that lay idle before, whose death would be excused as long as nothing has begun on it.
    await expectWorking(over)
    let runs = 0
    const work = async (session: Session) => {
      runs += 1
      await session.run('INSERT INTO public.t VALUES (1)')
      const slow = session.rows('SELECT pg_sleep(30)')
      // Issued behind it, and by work that does not notice what happened.
      const behind = session.run('INSERT INTO public.t VALUES (2)').catch(() => undefined)
      await until(db, ASLEEP)
      await terminate(db, session.pid)
      await slow.catch(() => undefined)
      await session.run('INSERT INTO public.t VALUES (3)').catch(() => undefined)
      await sleep(100)
      await session.run('INSERT INTO public.t VALUES (4)').catch(() => undefined)
      await behind
    }
    let ended: Promise<void> | undefined
    const failed = over.transaction(call(), session => {
      ended = work(session)
      return ended
    })
    expect(await codeOf(failed)).toBe('transient')
    expect(runs).toBe(1)
    await expectWorking(over)
    await ended
    expect(await stored()).toEqual([])
  })

  test('between two statements of a transaction does the same', async () => {
    const { db, over, stored } = await bench()
    const failed = over.transaction(call(), async session => {
      await session.run('INSERT INTO public.t VALUES (1)')
      await terminate(db, session.pid)
      await session.run('INSERT INTO public.t VALUES (2)')
    })
    expect(await codeOf(failed)).toBe('transient')
    await expectWorking(over)
    expect(await stored()).toEqual([])
  })

  test('never gives its locks to another session of the same holder', async () => {
    const { db, over } = await bench()
    const held = await over.hold(call())
    await held.rows('SELECT pg_advisory_lock(7)')
    await terminate(db, held.pid)
    await expectWorking(over)
    for (let attempt = 0; attempt < 3; attempt++) expect(await codeOf(held.rows('SELECT 1'))).toBe('transient')
    const ours = 'database = (SELECT oid FROM pg_database WHERE datname = current_database())'
    const locks = await db.query(`SELECT 1 FROM pg_locks WHERE locktype = 'advisory' AND objid = 7 AND ${ours}`)
    expect(locks).toEqual([])
  })
})

describeWithServer('a session', () => {
  test('that may only read, as after its server became a standby, serves nobody again', async () => {
    const { over, stored } = await bench()
    let pid = 0
    const refused = over.use(call(), async session => {
      pid = session.pid
      await session.run('SET SESSION CHARACTERISTICS AS TRANSACTION READ ONLY')
      await session.run('INSERT INTO public.t VALUES (1)')
    })
    expect(await codeOf(refused)).toBe('denied')
    await over.use(call(), async session => {
      expect(session.pid).not.toBe(pid)
      await session.run('INSERT INTO public.t VALUES (2)')
    })
    expect(await stored()).toEqual([2])
  })
})

describeWithServer('a connection that breaks', () => {
  test('by a reset during BEGIN leaves a pool that works', async () => {
    const { over, wire } = await bench()
    await expectWorking(over)
    for (let round = 0; round < 5; round++) {
      wire.resetAfter(1)
      // The session lay idle and nothing had begun, so the transaction runs on a new one.
      expect(await over.transaction(call(), session => session.rows('SELECT 1'))).toEqual([[1]])
      for (let n = 0; n < 10; n++) await expectWorking(over)
    }
  })

  test('by a reset in the middle of a result rejects at once', async () => {
    const { over, wire } = await bench()
    await expectWorking(over)
    const big = over.use(call(), session => {
      wire.resetAfter(100_000)
      return session.rows(`SELECT repeat('x', 1000) FROM generate_series(1, 10000)`)
    })
    expect(await codeOf(big)).toBe('transient')
    await expectWorking(over)
  })

  test('settles every statement that was on its way', async () => {
    const { db, over, wire } = await bench()
    const all: Promise<unknown>[] = []
    // Nothing but the reset can end it: no deadline, and the first statement takes longer than the test may.
    const asked = over.use({ deadlineMs: Number.POSITIVE_INFINITY }, session => {
      for (let n = 0; n < 300; n++) all.push(session.rows('SELECT $1::int, pg_sleep($2)', [n, n === 0 ? 600 : 0]))
      return Promise.allSettled(all)
    })
    const code = codeOf(asked)
    await until(db, ASLEEP)
    wire.reset()
    expect(await code).toBe('transient')
    const codes = await Promise.all(all.map(codeOf))
    expect(new Set(codes)).toEqual(new Set(['transient']))
    expect(codes).toHaveLength(300)
    await expectWorking(over)
  })

  test('lets those who wait for a session go on with new ones', async () => {
    const { db, over, wire } = await bench({ poolMax: 2 })
    const first = [1, 2].map(() => over.use(call(), session => session.rows('SELECT pg_sleep(30)')))
    const codes = Promise.all(first.map(codeOf))
    const waiting = Array.from({ length: 20 }, (_, n) =>
      over.use(call(), session => session.rows('SELECT $1::int', [n]))
    )
    await until(db, ASLEEP, 2)
    wire.reset()
    expect(await codes).toEqual(['transient', 'transient'])
    expect(await Promise.all(waiting)).toEqual(Array.from({ length: 20 }, (_, n) => [[n]]))
  })
})

describeWithServer('a server that does not answer', () => {
  test('after the connection was made costs a call its deadline and no more', async () => {
    const { over, wire } = await bench()
    await expectWorking(over)
    wire.blackHole()
    for (const work of ['use', 'transaction'] as const) {
      const asked = over[work](call(300), session => session.rows('SELECT 1'))
      expect(await sooner(800, codeOf(asked))).toBe('transient')
    }
    expect(wire.dropped).toBeGreaterThan(0)
    wire.heal()
    await expectWorking(over)
  })

  test('is given up at once when nobody waits any more', async () => {
    const { over, wire } = await bench()
    await expectWorking(over)
    wire.blackHole()
    const controller = new AbortController()
    const asked = over.use({ ...call(), signal: controller.signal }, session => session.rows('SELECT 1'))
    setTimeout(() => controller.abort(new Error('not any more')), 100)
    await expect(asked).rejects.toThrow('not any more')
    wire.heal()
    await expectWorking(over)
  })

  test('costs no more than the time for connecting before there is a session', async () => {
    const port = await listen(() => undefined)
    const over = sessions({ ...addressOf(await database()), port }, { connectTimeoutMs: 300 })
    const asked = over.use(call(), session => session.rows('SELECT 1'))
    expect(await sooner(900, codeOf(asked))).toBe('transient')
  })

  test('but hangs up is asked once for each call, however often it would let itself be asked', async () => {
    let connects = 0
    const port = await listen(socket => {
      connects += 1
      socket.end()
    })
    const over = sessions({ ...addressOf(await database()), port })
    for (let n = 1; n <= 3; n++) {
      expect(await codeOf(over.transaction(call(), session => session.rows('SELECT 1')))).toBe('transient')
      expect(await codeOf(over.hold(call()))).toBe('transient')
      await sleep(50)
      expect(connects).toBe(2 * n)
    }
  })

  test('and speaks another language is refused', async () => {
    const port = await listen(socket => socket.write('HTTP/1.1 400 Bad Request\r\n\r\n'))
    const over = sessions({ ...addressOf(await database()), port }, { connectTimeoutMs: 500 })
    expect(await codeOf(over.use(call(), session => session.rows('SELECT 1')))).toBe('transient')
  })

  test('because nobody listens is refused at once', async () => {
    const db = await database()
    const over = sessions({ ...addressOf(db), port: 1 })
    expect(await codeOf(over.use(call(), session => session.rows('SELECT 1')))).toBe('transient')
    expect(await codeOf(over.hold(call()))).toBe('transient')
  })
})

describeWithServer('sessions', () => {
  test('that are full make others wait, within their deadline', async () => {
    const { over } = await bench({ poolMax: 2 })
    const busy = [1, 2].map(() => over.use(call(), session => session.rows('SELECT pg_sleep(0.5)')))
    expect(await codeOf(over.use(call(100), session => session.rows('SELECT 1')))).toBe('exhausted')
    await Promise.all(busy)
    await expectWorking(over)
  })

  test('always leave a place to those who only borrow', async () => {
    const { over } = await bench({ poolMax: 3 })
    const held = [await over.hold(call()), await over.hold(call())]
    expect(await codeOf(over.hold(call(100)))).toBe('exhausted')
    await expectWorking(over)
    await held[0]?.release()
    const third = await over.hold(call())
    await third.release()
    await held[1]?.release()
  })

  test('that are closed refuse, and close twice', async () => {
    const { over, db } = await bench()
    await expectWorking(over)
    const held = await over.hold(call())
    await over.close()
    await over.close()
    expect(held.lost.aborted).toBe(true)
    expect(await codeOf(over.use(call(), session => session.rows('SELECT 1')))).toBe('transient')
    // What closed here was the way to the server, which learns of it a moment later.
    await until(db, `application_name = 'alkblobs'`, 0)
  })

  test('open nothing by being made', async () => {
    const { wire, over } = await bench()
    expect(over).toBeInstanceOf(Sessions)
    await sleep(50)
    expect(wire.connects).toBe(0)
  })
})
