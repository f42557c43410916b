// Every failure of the driver alone that is known (`postgres` 3.4.9), provoked; and the same done to our sessions, which answer by a typed
// error or by what was asked. A driver that does better one day fails these tests, and the guard against that failure may go.
import type { TestDatabase } from '@alkblobs/testkit'
import { expect, test } from 'vitest'
import { bare } from './bare.js'
import {
  ASLEEP,
  addressOf,
  type Bench,
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
import { pooler } from './pooler.js'
import { listen } from './wire.js'

/** The address under which the driver alone reaches the server, by this port. */
const urlOf = (db: TestDatabase, port: number) => db.url.replace(`:${db.port}/`, `:${port}/`)
const wired = ({ db, wire }: Bench) => urlOf(db, wire.port)
/** What a process says that an exception has ended. */
const CRASH = /TypeError: Cannot read properties of (null|undefined) \(reading '(write|queue)'\)/

async function killSleeper(db: TestDatabase): Promise<void> {
  await until(db, ASLEEP)
  const [row] = await db.query<{ pid: number }>(`SELECT pid FROM pg_stat_activity
    WHERE datname = current_database() AND ${ASLEEP}`)
  await terminate(db, row?.pid ?? 0)
}

/** The database is empty again, and nobody is on it but the sessions of the test. */
async function cleared({ db, wire }: Bench): Promise<void> {
  await eventually('the driver is gone', () => wire.lines.size === 0)
  // A server whose client is reset while it sleeps sleeps on.
  await db.query(`SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity
    WHERE datname = current_database() AND application_name NOT LIKE 'alkblobs%'`)
  await db.query('TRUNCATE public.t')
}

describeWithServer('a backend that is killed', () => {
  test('under an idle handle makes the driver throw past every promise, and ours reject', async () => {
    const at = await bench()
    const { db, over } = at
    const alone = await bare('idle reserve', wired(at), pid => terminate(db, pid))
    expect(alone).toMatchObject({ said: [], code: 1, stderr: expect.stringMatching(CRASH) })
    const held = await over.hold(call())
    await terminate(db, held.pid)
    expect(await codeOf(held.rows('SELECT 1'))).toBe('transient')
    await expectWorking(over)
  })

  test('in a transaction makes the driver throw past every promise, and ours reject', async () => {
    const at = await bench()
    const { db, over, stored } = at
    const alone = await bare('query inside begin', wired(at), () => killSleeper(db))
    expect(alone).toMatchObject({
      said: [{ rejected: 'CONNECTION_CLOSED' }],
      code: 1,
      stderr: expect.stringMatching(CRASH)
    })
    const failed = over.transaction(call(), async session => {
      await session.run('INSERT INTO public.t VALUES (1)')
      await session.rows('SELECT pg_sleep(30)')
    })
    const code = codeOf(failed)
    await killSleeper(db)
    expect(await code).toBe('transient')
    await expectWorking(over)
    expect(await stored()).toEqual([])
  })

  test('lets the driver run the rest of its transaction outside of any, and ours nothing', async () => {
    const at = await bench()
    const { db, over, stored } = at
    const alone = await bare('slot that reconnects', wired(at), () => killSleeper(db))
    expect(alone).toMatchObject({ said: [{ rejected: 'CONNECTION_CLOSED' }, 'worked on'], code: 0 })
    expect(await stored()).toEqual([2])
    await cleared(at)
    let rest: Promise<string> | undefined
    const failed = over.transaction(call(), async session => {
      await session.run('INSERT INTO public.t VALUES (1)')
      await session.rows('SELECT pg_sleep(30)').catch(() => undefined)
      rest = expectWorking(over).then(() => codeOf(session.run('INSERT INTO public.t VALUES (2)')))
      await rest
    })
    const code = codeOf(failed)
    await killSleeper(db)
    expect(await code).toBe('transient')
    // Whoever goes on with a transaction that is over is told that it is not his any more.
    expect(await rest).toBe('unknown')
    expect(await stored()).toEqual([])
  })

  test('leaves a handle that the driver fills with another session, and ours never', async () => {
    const at = await bench()
    const { db, over } = at
    const alone = await bare('stale handle', wired(at), pid => terminate(db, pid))
    expect(alone).toMatchObject({ said: [{ isAnother: true, locks: 0 }], code: 0 })
    const held = await over.hold(call())
    await held.rows('SELECT pg_advisory_lock(7)')
    await terminate(db, held.pid)
    expect(await over.use(call(), async session => session.pid)).not.toBe(held.pid)
    expect(await codeOf(held.rows('SELECT pg_backend_pid()'))).toBe('transient')
    expect(held.lost.aborted).toBe(true)
  })

  test('strands what the driver had queued in its transaction, and ours settles it', async () => {
    const at = await bench()
    const { db, over } = at
    const alone = await bare('queued in a lost transaction', wired(at), () => killSleeper(db))
    const rejected = { rejected: 'CONNECTION_CLOSED' }
    expect(alone.said[0]).toEqual(rejected)
    // Three were on their way, and three waited for those.
    expect(alone.said[1]).toEqual([...Array(3).fill(rejected), ...Array(3).fill({ pending: true })])
    let queued: Promise<string>[] = []
    const failed = over.transaction(call(), async session => {
      queued = ['SELECT pg_sleep(30)', ...Array(300).fill('SELECT 1')].map(sql => codeOf(session.rows(sql)))
      await Promise.all(queued)
    })
    const code = codeOf(failed)
    await killSleeper(db)
    expect(await code).toBe('transient')
    expect(new Set(await Promise.all(queued))).toEqual(new Set(['transient']))
  })
})

describeWithServer('a connection that is reset', () => {
  test('in a transaction stops the driver for good after one more answer, and ours not at all', async () => {
    const at = await bench()
    const { db, over, wire } = at
    const reset = async () => {
      await until(db, ASLEEP)
      wire.reset()
    }
    const alone = await bare('reset during begin', wired(at), reset)
    const pending = { pending: true }
    const [first, ...later] = alone.said
    expect(first).toEqual({ rejected: expect.stringMatching(/^(ECONNRESET|CONNECTION_CLOSED)$/) })
    expect(later).toEqual([{ resolved: [{ two: 2 }] }, pending, pending])
    await cleared(at)
    const failed = over.transaction(call(), session => session.rows('SELECT pg_sleep(30)'))
    const code = codeOf(failed)
    await reset()
    expect(await code).toBe('transient')
    for (let n = 0; n < 3; n++) await expectWorking(over)
  })

  test('under somebody who waits for a handle of the driver strands him, and nobody of ours', async () => {
    const at = await bench({ poolMax: 2 })
    const { db, over, wire } = at
    const reset = async () => {
      await until(db, ASLEEP)
      wire.reset()
    }
    const alone = await bare('queued reserve', wired(at), reset)
    expect(alone.said[0]).toEqual({ rejected: expect.stringMatching(/^(ECONNRESET|CONNECTION_CLOSED)$/) })
    expect(alone.said[1]).toEqual({ pending: true })
    await cleared(at)
    const first = await over.hold(call())
    const second = over.hold(call())
    const asleep = codeOf(first.rows('SELECT pg_sleep(30)'))
    await reset()
    expect(await asleep).toBe('transient')
    expect(await (await second).rows('SELECT 1')).toEqual([[1]])
  })

  test('before the answer to a commit is a failure to the driver, and ours asks what became of it', async () => {
    const at = await bench()
    const { over, wire, stored } = at
    const alone = await bare('reset commit', wired(at), () => wire.resetAfter(0))
    expect(alone.said).toEqual([{ rejected: 'ECONNRESET' }])
    expect(await stored()).toEqual([1])
    await cleared(at)
    await over.transaction(call(), async session => {
      await session.run('INSERT INTO public.t VALUES (2)')
      wire.resetAfter(0)
    })
    expect(await stored()).toEqual([2])
  })
})

describeWithServer('silence', () => {
  test('after connecting keeps the driver waiting for ever, and ours until the deadline', async () => {
    const at = await bench()
    const { over, wire } = at
    const alone = await bare('black hole', wired(at), () => wire.blackHole())
    expect(alone.said).toEqual([{ pending: true }])
    wire.heal()
    await expectWorking(over)
    wire.blackHole()
    expect(await sooner(800, codeOf(over.use(call(300), session => session.rows('SELECT 1'))))).toBe('transient')
    wire.heal()
    await expectWorking(over)
  })

  test('instead of the answer to a commit keeps the driver waiting for ever, and ours says that it is not known', async () => {
    const at = await bench()
    const { over, wire, stored } = at
    const alone = await bare('silent commit', wired(at), () => wire.mute())
    expect(alone.said).toEqual([{ pending: true }])
    expect(await stored()).toEqual([1])
    wire.heal()
    await cleared(at)
    await expectWorking(over)
    const asked = over.transaction(call(1_500), async session => {
      await session.run('INSERT INTO public.t VALUES (2)')
      wire.mute()
    })
    expect(await codeOf(asked)).toBe('outcome-unknown')
    await eventually('committed', async () => (await stored()).length > 0)
    wire.heal()
    await expectWorking(over)
  })
})

describeWithServer('what the driver does by itself', () => {
  test('is to connect again without a pause or an end where it is let in and hung up on; ours asks once', async () => {
    const { db } = await bench()
    let connects = 0
    const port = await listen(socket => {
      connects += 1
      socket.end()
    })
    const alone = await bare('accept and hang up', urlOf(db, port))
    expect(alone.said).toEqual([{ pending: true }])
    expect(connects).toBeGreaterThan(20)
    connects = 0
    const over = sessions({ ...addressOf(db), port })
    expect(await codeOf(over.use(call(), session => session.rows('SELECT 1')))).toBe('transient')
    expect(connects).toBe(1)
  })

  test('is to begin on a connection that is full, and to fall over it; ours begins on one of its own', async () => {
    const at = await bench({ poolMax: 2 })
    const { db, over } = at
    const alone = await bare('begin at the pipeline limit', wired(at))
    expect(alone).toMatchObject({ said: [{ rejected: 'TypeError' }], code: 1, stderr: expect.stringMatching(CRASH) })
    const many = over.use(call(), session =>
      Promise.all(Array.from({ length: 300 }, (_, n) => session.rows('SELECT $1::int', [n])))
    )
    await over.transaction(call(), session => session.run('INSERT INTO public.t VALUES (1)'))
    expect(await many).toHaveLength(300)
    await until(db, `state = 'idle in transaction'`, 0)
  })

  test('is to lose statements behind a proxy that pools by transaction; ours refuses it', async () => {
    const { db } = await bench()
    const port = await pooler(db, 'transaction')
    const alone = await bare('pooler by transaction', urlOf(db, port))
    expect(alone.said[0]).toBeLessThan(40)
    const over = sessions({ ...addressOf(db), port })
    expect(await codeOf(over.use(call(), session => session.rows('SELECT 1')))).toBe('pooled')
  })
})
