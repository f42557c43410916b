import { expect, test } from 'vitest'
import {
  ASLEEP,
  addressOf,
  bench,
  call,
  codeOf,
  describeWithServer,
  eventually,
  expectWorking,
  sessions,
  sooner,
  terminate,
  until
} from './fixture.js'

/** Time enough for what comes before the commit, on a busy machine too; the commit itself is never answered. */
const UNANSWERED_MS = 1_500

describeWithServer('a commit', () => {
  test('whose answer the network swallows is unknown at the deadline, and happened', async () => {
    const { over, wire, stored } = await bench()
    await expectWorking(over)
    const asked = over.transaction(call(UNANSWERED_MS), async session => {
      await session.run('INSERT INTO public.t VALUES (1)')
      wire.mute()
    })
    expect(await sooner(UNANSWERED_MS + 500, codeOf(asked))).toBe('outcome-unknown')
    await eventually('committed', async () => (await stored()).length > 0)
    await eventually('answered', () => wire.dropped > 0)
    expect(await stored()).toEqual([1])
    wire.heal()
    await expectWorking(over)
  })

  test('whose answer is lost by a reset has the result that it would have had', async () => {
    const { over, wire, stored } = await bench()
    const lost = await over.transaction(call(), async session => {
      await session.run('INSERT INTO public.t VALUES (1)')
      wire.resetAfter(0)
      return session.pid
    })
    expect(await stored()).toEqual([1])
    expect(await over.use(call(), async session => session.pid)).not.toBe(lost)
    await expectWorking(over)
  })

  test('whose answer does not come on its own connection is asked for on another, before the deadline', async () => {
    const { db, over, wire, stored } = await bench()
    const pid = await over.transaction(call(2_000), async session => {
      await session.run('INSERT INTO public.t VALUES (1)')
      wire.swallow('answers')
      return session.pid
    })
    expect(wire.dropped).toBeGreaterThan(0)
    expect(await stored()).toEqual([1])
    await db.query('SELECT pg_terminate_backend($1, 5000)', [pid])
    await expectWorking(over)
  })

  test('whose answer is lost has its result in a pool of two whose sessions are all lost at once', async () => {
    const { over, wire, stored } = await bench({ poolMax: 2 })
    let ready = 0
    let go: () => void = () => undefined
    const both = new Promise<void>(resolve => {
      go = resolve
    })
    const one = (n: number) =>
      over.transaction(call(), async session => {
        await session.run('INSERT INTO public.t VALUES ($1)', [n])
        if (++ready === 2) {
          wire.resetAfter(0)
          go()
        }
        await both
        return n
      })
    const settled = await Promise.allSettled([one(1), one(2)])
    const done = settled.flatMap(each => (each.status === 'fulfilled' ? [each.value] : []))
    // The reset may come before the other one's COMMIT has arrived; then that one is known not to have happened.
    for (const each of settled) if (each.status === 'rejected') expect(each.reason).toMatchObject({ code: 'transient' })
    expect(done.length).toBeGreaterThan(0)
    expect(await stored()).toEqual(done)
  })

  test('that never reached a server which nobody reaches is unknown, and did not happen', async () => {
    const { over, wire, stored } = await bench()
    const asked = over.transaction(call(UNANSWERED_MS), async session => {
      await session.run('INSERT INTO public.t VALUES (1)')
      wire.blackHole()
    })
    expect(await codeOf(asked)).toBe('outcome-unknown')
    wire.heal()
    await expectWorking(over)
    expect(await stored()).toEqual([])
  })

  test.each(['silence', 'reset'])('that never reached the server (%s) is known not to have happened', async way => {
    const { db, over, wire, stored } = await bench()
    let pid = 0
    const asked = over.transaction(call(2_000), async session => {
      await session.run('INSERT INTO public.t VALUES (1)')
      pid = session.pid
      if (way === 'silence') wire.swallow('requests')
      else wire.resetAtRequest()
    })
    await expect(asked).rejects.toMatchObject({ code: 'transient', message: expect.stringContaining('rolled back') })
    expect(wire.dropped).toBeGreaterThan(0)
    // The old session cannot commit it later: it has ended, or at least its transaction has.
    expect(await db.query('SELECT 1 FROM pg_stat_activity WHERE pid = $1 AND backend_xid IS NOT NULL', [pid])).toEqual(
      []
    )
    expect(await stored()).toEqual([])
    await expectWorking(over)
  })

  test('that is ended by an administrator while it is under way is known not to have happened', async () => {
    const { db, over, stored } = await bench()
    await db.query(`CREATE OR REPLACE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_sleep(20); RETURN NULL; END'`)
    await db.query(`CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON public.t DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION public.wait()`)
    let pid = 0
    const outcome = codeOf(
      over.transaction(call(), async session => {
        pid = session.pid
        await session.run('INSERT INTO public.t VALUES (1)')
      })
    )
    await until(db, `query = 'COMMIT' AND state = 'active'`)
    await terminate(db, pid)
    expect(await outcome).toBe('transient')
    expect(await stored()).toEqual([])
  })

  test('that is under way for too long is ended, and known not to have happened', async () => {
    const { db, over, stored } = await bench()
    await db.query(`CREATE OR REPLACE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_sleep(20); RETURN NULL; END'`)
    await db.query(`CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON public.t DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION public.wait()`)
    let pid = 0
    const asked = over.transaction(call(1_500), async session => {
      pid = session.pid
      await session.run('INSERT INTO public.t VALUES (1)')
    })
    expect(await codeOf(asked)).toBe('transient')
    expect(await db.query('SELECT 1 FROM pg_stat_activity WHERE pid = $1', [pid])).toEqual([])
    expect(await stored()).toEqual([])
  })

  test('goes on though its caller stops waiting', async () => {
    const { over, stored } = await bench()
    const controller = new AbortController()
    const done = over.transaction({ ...call(), signal: controller.signal }, async session => {
      await session.run('INSERT INTO public.t VALUES (1)')
      setImmediate(() => controller.abort(new Error('enough')))
      return 'done'
    })
    expect(await done).toBe('done')
    expect(controller.signal.aborted).toBe(true)
    expect(await stored()).toEqual([1])
  })

  test('that a constraint refuses is known to be rolled back', async () => {
    const { db, over, stored } = await bench()
    await db.query('ALTER TABLE public.t ADD CONSTRAINT once UNIQUE (v) DEFERRABLE INITIALLY DEFERRED')
    const asked = over.transaction(call(), async session => {
      await session.run('INSERT INTO public.t VALUES (1)')
      await session.run('INSERT INTO public.t VALUES (1)')
    })
    await expect(asked).rejects.toMatchObject({ code: '23505', constraint: 'once' })
    expect(await stored()).toEqual([])
    await expectWorking(over)
  })

  test('of work that swallowed an error is not taken for one', async () => {
    const { over, stored } = await bench()
    const asked = over.transaction(call(), async session => {
      await session.run('INSERT INTO public.t VALUES (1)')
      await session.run('SELECT 1 / 0').catch(() => undefined)
    })
    expect(await codeOf(asked)).toBe('unknown')
    expect(await stored()).toEqual([])
    await expectWorking(over)
  })

  test('of a held session is judged in the same way', async () => {
    const { over, wire, stored } = await bench()
    const held = await over.hold(call())
    await held.begin(call())
    await held.run('INSERT INTO public.t VALUES (1)')
    await held.commit(call())
    await held.begin(call())
    await held.run('INSERT INTO public.t VALUES (2)')
    await held.rollback(call())
    await held.begin(call())
    await held.run('INSERT INTO public.t VALUES (3)')
    wire.resetAfter(0)
    await held.commit(call())
    expect(held.lost.aborted).toBe(true)
    await held.rollback(call())
    await held.release()
    await eventually('the server did what it was told', async () => (await stored()).length === 2)
    expect(await stored()).toEqual([1, 3])
    const other = await over.hold(call())
    await other.begin(call())
    await other.run('INSERT INTO public.t VALUES (4)')
    wire.resetAtRequest()
    expect(await codeOf(other.commit(call()))).toBe('transient')
    const last = await over.hold(call())
    await last.begin(call())
    await last.run('INSERT INTO public.t VALUES (5)')
    wire.mute()
    expect(await codeOf(last.commit(call(300)))).toBe('outcome-unknown')
    expect(last.lost.aborted).toBe(true)
    expect(await stored()).toEqual([1, 3, 5])
  })
})

describeWithServer('a transaction', () => {
  test('whose work throws is rolled back, with the error of the work', async () => {
    const { over, stored } = await bench()
    const asked = over.transaction(call(), async session => {
      await session.run('INSERT INTO public.t VALUES (1)')
      throw Object.assign(new Error('mine'), { code: 'EMINE' })
    })
    await expect(asked).rejects.toMatchObject({ message: 'mine', code: 'EMINE' })
    expect(await stored()).toEqual([])
  })

  test('leaves a session that serves nobody who kept it', async () => {
    const { over, stored } = await bench()
    let kept: { run(sql: string): Promise<number> } | undefined
    await over.transaction(call(), async session => {
      kept = session
    })
    expect(await codeOf(kept?.run('INSERT INTO public.t VALUES (1)') ?? Promise.resolve())).toBe('unknown')
    expect(await stored()).toEqual([])
  })

  test('that is pipelined by hundreds, beside hundreds of others, is whole', async () => {
    const { over, stored } = await bench({ poolMax: 4 })
    await Promise.all(
      Array.from({ length: 150 }, (_, n) =>
        over.transaction(call(), async session => {
          await session.run('INSERT INTO public.t VALUES ($1)', [n])
        })
      )
    )
    await over.transaction(call(), session =>
      Promise.all(Array.from({ length: 350 }, (_, n) => session.run('INSERT INTO public.t VALUES ($1)', [1_000 + n])))
    )
    expect(await stored()).toHaveLength(500)
  })

  test('that loses a deadlock, waits too long for a lock or is cancelled says which', async () => {
    const { db, over } = await bench({}, { lockTimeoutMs: 300 })
    await db.query('INSERT INTO public.t VALUES (1), (2)')
    const lock = (v: number) => `SELECT 1 FROM public.t WHERE v = ${v} FOR UPDATE`
    const timedOut = over.transaction(call(), async session => {
      await session.run(lock(1))
      await over.transaction(call(), other => other.run(lock(1)))
    })
    await expect(timedOut).rejects.toMatchObject({ code: '55P03' })
    expect(await codeOf(timedOut)).toBe('conflict')

    const patient = sessions(addressOf(db), { lockTimeoutMs: 8_000 })
    let holders = 0
    const crossed = await Promise.allSettled(
      [[1, 2] as const, [2, 1] as const].map(([first, second]) =>
        patient.transaction(call(), async session => {
          await session.run(lock(first))
          holders += 1
          await eventually('each has one', () => holders === 2)
          await session.run(lock(second))
        })
      )
    )
    const losers = crossed.filter(each => each.status === 'rejected')
    expect(losers).toEqual([{ status: 'rejected', reason: expect.objectContaining({ code: '40P01' }) }])

    const cancelled = over.use(call(), async session => {
      const asleep = session.rows('SELECT pg_sleep(30)')
      await until(db, ASLEEP)
      await db.query('SELECT pg_cancel_backend($1)', [session.pid])
      await asleep
    })
    expect(await codeOf(cancelled)).toBe('transient')
    await expectWorking(over)
  })

  test('leaves no lock behind when its caller stops waiting', async () => {
    const { db, over } = await bench()
    const controller = new AbortController()
    const asked = over.transaction({ ...call(), signal: controller.signal }, async session => {
      await session.run('LOCK TABLE public.t')
      await session.rows('SELECT pg_sleep(600)')
    })
    const settled = asked.catch(error => error)
    await until(db, ASLEEP)
    controller.abort(new Error('enough'))
    expect(await settled).toMatchObject({ message: 'enough' })
    // The server looks once a second whether its client is still there; without that it would sleep for longer than the test may.
    await db.query('LOCK TABLE public.t; SELECT 1')
  })

  test('cut at random a hundred times is committed or not, as was said, and nothing hangs', async () => {
    const { db, over, wire, stored } = await bench({ poolMax: 4 })
    const outcomes = new Map<number, string>()
    const cut = setInterval(() => (Math.random() < 0.5 ? wire.reset() : wire.hangUp()), 25)
    const one = async (n: number) => {
      const asked = over.transaction(call(20_000), async session => {
        await session.run('INSERT INTO public.t VALUES ($1)', [n])
        await session.rows('SELECT pg_sleep(0.005)')
      })
      outcomes.set(
        n,
        await asked.then(
          () => 'committed',
          () => codeOf(asked)
        )
      )
    }
    for (let batch = 0; batch < 10; batch++)
      await Promise.all(Array.from({ length: 10 }, (_, n) => one(batch * 10 + n)))
    clearInterval(cut)
    wire.heal()
    const found = new Set(await stored())
    for (const [n, outcome] of outcomes) {
      if (outcome === 'committed') expect(found.has(n)).toBe(true)
      else if (outcome !== 'outcome-unknown') expect([outcome, found.has(n)]).toEqual(['transient', false])
    }
    expect([...outcomes.values()].filter(outcome => outcome !== 'committed').length).toBeGreaterThan(0)
    await expectWorking(over)
    await terminate(
      db,
      (await over.use(call(), session => session.rows<[number]>('SELECT pg_backend_pid()')))[0]?.[0] ?? 0
    )
  })
})

describeWithServer('a transaction', () => {
  // As when somebody cancels that very statement: what had travelled along with it would be done for good.
  test('whose BEGIN is refused does nothing, and the session goes on', async () => {
    const { over, wire, stored } = await bench()
    await expectWorking(over)
    wire.garble('BEGIN ISOLATION')
    const asked = over.transaction(call(), session => session.run('INSERT INTO public.t VALUES (1)'))
    await expect(asked).rejects.toThrow()
    expect(await stored()).toEqual([])
    await expectWorking(over)
  })
})
