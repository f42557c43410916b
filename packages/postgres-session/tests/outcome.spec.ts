/** What a server says of a transaction after it stopped, crashed, or made way for another one. */
import { startServer, type TestServer } from '@alkblobs/testkit'
import { expect, onTestFinished, test } from 'vitest'
import { checkConfig } from '../src/config.js'
import { Connection } from '../src/connection.js'
import { type Begun, LostAnswer, type Origin, settle } from '../src/outcome.js'
import { over } from '../src/session.js'
import { begin, commit } from '../src/transaction.js'
import { call, codeOf, describeWithServer, sessions, sleep } from './fixture.js'
import { Wire } from './wire.js'

const TIMEOUTS = { connectTimeoutMs: 3_000, lockTimeoutMs: 2_000 }

/** A server of its own, with a table. */
async function server(settings: Readonly<Record<string, string>> = {}): Promise<TestServer> {
  const started = await startServer({ settings })
  onTestFinished(() => started.release())
  const at = await connect(started)
  await at.run('CREATE TABLE public.t (v int)')
  await at.end()
  return started
}

async function connect({ url }: { readonly url: string }): Promise<Connection> {
  const connection = await Connection.open(checkConfig({ url }), TIMEOUTS, call())
  onTestFinished(() => connection.kill(new Error('the test is over')))
  return connection
}

async function begun(at: Connection): Promise<Begun> {
  const mark = await begin(at, call())
  if (mark === undefined) throw new Error('no number')
  return mark
}

/** What is said of a transaction, by a session that is opened for each question. */
function fateOf(under: TestServer, mark: Begun, ms = 10_000): Promise<void> {
  return settle(new LostAnswer(mark, new Error('lost')), call(ms), async (attempt, look) => {
    const at = await Connection.open(checkConfig({ url: under.url }), TIMEOUTS, attempt)
    try {
      return await over(at, attempt, () => look(at))
    } finally {
      await at.end()
    }
  })
}

describeWithServer('a transaction whose answer is lost', () => {
  test.each(['SIGKILL', 'SIGQUIT', 'restart'] as const)('is known after a %s of its server', async way => {
    const under = await server()
    const at = await connect(under)
    const mark = await begun(at)
    await at.run('INSERT INTO public.t VALUES (1)')
    expect(await commit(at, mark, call())).toBeUndefined()
    const open = await begun(at)
    await at.run('INSERT INTO public.t VALUES (2)')
    if (way === 'restart') await under.restart()
    else {
      await under.kill(way)
      await under.start()
    }
    await fateOf(under, mark)
    expect(await codeOf(fateOf(under, open))).toBe('transient')
  })

  test('is known when its server comes back within the deadline, and unknown when it does not', async () => {
    const under = await server()
    const wire = await Wire.to(under)
    const pool = sessions({ url: under.url.replace(`:${under.port}/`, `:${wire.port}/`) })
    const lose = (ms: number, v: number) =>
      pool.transaction(call(ms), async session => {
        await session.run('INSERT INTO public.t VALUES ($1)', [v])
        wire.resetAfter(0)
        wire.onReset = () => wire.blackHole()
        return v
      })
    const known = lose(20_000, 1)
    await wire.silent()
    await under.kill('SIGKILL')
    await under.start()
    wire.heal()
    expect(await known).toBe(1)
    const unknown = lose(1_000, 2)
    await wire.silent()
    expect(await codeOf(unknown)).toBe('outcome-unknown')
    wire.heal()
    expect(await pool.use(call(), session => session.rows('SELECT v FROM public.t ORDER BY v'))).toEqual([[1], [2]])
  })

  test.each(['the server', 'one of its processes'])(
    'is not taken for the one that got its number after a crash of %s',
    async what => {
      const under = await server()
      const [at, victim] = [await connect(under), await connect(under)]
      const mark = await begun(at)
      if (what === 'the server') {
        await under.kill('SIGKILL')
        await under.start()
      } else {
        // The server ends all its processes and recovers, without a start of its own.
        process.kill(victim.pid, 'SIGKILL')
        const isUp = () =>
          connect(under).then(
            () => true,
            () => false
          )
        await expect.poll(isUp, { timeout: 10_000 }).toBe(true)
        expect(at.isAlive).toBe(false)
      }
      expect(await codeOf(fateOf(under, mark))).toBe('transient')
      const other = await connect(under)
      for (let attempt = 0; attempt < 100; attempt++) {
        const { xid } = await begun(other)
        await other.run('INSERT INTO public.t VALUES (1)')
        expect(await commit(other, undefined, call())).toBeUndefined()
        if (BigInt(xid) >= BigInt(mark.xid)) break
      }
      expect(await other.rows('SELECT pg_xact_status($1::xid8)', [mark.xid])).toEqual([['committed']])
      expect(await codeOf(fateOf(under, mark))).toBe('outcome-unknown')
      await other.run('CHECKPOINT')
      expect(await codeOf(fateOf(under, mark))).toBe('outcome-unknown')
    }
  )

  test('is believed over a checkpoint by who knows the run, was there before, or sees its session', async () => {
    const under = await server()
    const eye = await connect(under)
    const at = await connect(under)
    const known = await begun(at)
    await at.run('INSERT INTO public.t VALUES (1)')
    expect(await commit(at, known, call())).toBeUndefined()
    const mark = { ...known, origin: { server: (known.origin as Origin).server, run: 'another' } }
    await fateOf(under, mark)
    await eye.run('CHECKPOINT')
    await fateOf(under, mark)
    await at.end()
    while ((await eye.rows('SELECT 1 FROM pg_stat_get_activity($1::integer)', [mark.pid])).length > 0) await sleep(5)
    expect(await codeOf(fateOf(under, mark))).toBe('outcome-unknown')
    await settle(new LostAnswer(mark, undefined), call(), (_, look) => look(eye))
    await fateOf(under, known)
  })

  test('is unknown to another server, or the same one on another timeline', async () => {
    const under = await server()
    const at = await connect(under)
    const mark = await begun(at)
    expect(await commit(at, mark, call())).toBeUndefined()
    await at.end()
    const { server: there, run } = mark.origin as Origin
    const [system, timeline] = there.split(':')
    expect(timeline).toBe('00000001')
    for (const other of [`${system}:00000002`, `1:${timeline}`]) {
      expect(await codeOf(fateOf(under, { ...mark, origin: { server: other, run } }))).toBe('outcome-unknown')
    }
    expect(await codeOf(fateOf(under, { ...mark, origin: undefined }))).toBe('outcome-unknown')
    await fateOf(under, mark)
  })

  test('is unknown when its number is too old to ask for', async () => {
    const under = await server()
    const at = await connect(under)
    const mark = await begun(at)
    expect(await commit(at, mark, call())).toBeUndefined()
    // A number of an epoch before the first one's cannot be: the first that were given out are older than anything recorded.
    expect(await at.rows('SELECT pg_xact_status($1::xid8)', ['3'])).toEqual([[null]])
    expect(await codeOf(fateOf(under, { ...mark, xid: '3' }))).toBe('outcome-unknown')
  })

  test('that had committed and waited for a replica when its session was ended waits for it still', async () => {
    const under = await server()
    const pool = sessions({ url: under.url })
    const eye = await connect(under)
    let pid = 0
    await eye.run("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
    const reload = async () => {
      await eye.run('SELECT pg_reload_conf()')
    }
    await reload()
    while ((await eye.rows("SELECT current_setting('synchronous_standby_names')"))[0]?.[0] !== 'nobody') await sleep(5)
    const waiting = async (query: string) => {
      for (;;) {
        const rows = await eye.rows("SELECT 1 FROM pg_stat_activity WHERE wait_event = 'SyncRep' AND query LIKE $1", [
          query
        ])
        if (rows.length > 0) return
        await sleep(5)
      }
    }
    let isDone = false
    const done = pool
      .transaction(call(20_000), async session => {
        pid = session.pid
        await session.run('INSERT INTO public.t VALUES (1)')
        return 'done'
      })
      .finally(() => {
        isDone = true
      })
    await waiting('COMMIT')
    expect(await eye.rows('SELECT pg_terminate_backend($1::integer, 5000)', [pid])).toEqual([[true]])
    await waiting('%pg_logical_emit_message%')
    expect(await eye.rows('SELECT v FROM public.t')).toEqual([[1]])
    expect(isDone).toBe(false)
    await eye.run("ALTER SYSTEM SET synchronous_standby_names = ''")
    await reload()
    expect(await done).toBe('done')
  })
})
