import { expect, test } from 'vitest'
import { call, describeServer, digest, failure, inline, keyOf, openPool, pinned, sleep, stranger } from './fixture.js'

const OURS = "SELECT pid FROM pg_stat_activity WHERE application_name = 'alkblobs' AND query LIKE $1 AND pid <> $2"

describeServer('a backend that is killed', () => {
  test('in the middle of a joined put fails no put for good: what had not begun to commit runs again', async () => {
    const { at, catalog } = await openPool({ lockTimeoutMs: 10_000 })
    const other = await stranger(at)
    await other.begin()
    await other.say("INSERT INTO $.entries (key, length, body) VALUES ($1::bytea, 1, 'x')", [digest(1)])
    const put = failure(catalog.publish([inline(1)], call()))
    const others = [2, 3].map(n => failure(catalog.publish([inline(n)], call())))
    await sleep(20)
    const pids = await at.query<{ pid: number }>(OURS, [`%${at.schema}%`, other.pid])
    for (const { pid } of pids) await at.query(`SELECT pg_terminate_backend(${pid}, 5000)`)
    await other.rollback()
    expect(await Promise.all(others)).toEqual(['resolved', 'resolved'])
    expect(['resolved', 'transient']).toContain(await put)
    expect((await catalog.publish([inline(1)], call()))[0]).toHaveProperty('entry')
  })

  test('between calls is not noticed by the next call', async () => {
    const { at, catalog, sessions } = await openPool()
    await catalog.publish([inline(1)], call())
    const pid = await sessions.use(call(), async session => session.pid)
    await at.query(`SELECT pg_terminate_backend(${pid}, 5000)`)
    await sleep(50)
    expect((await catalog.find([keyOf(1)], call()))[0]?.key).toBe(keyOf(1))
    expect((await catalog.publish([inline(2)], call()))[0]?.outcome).toBe('created')
  })

  test('in its commit leaves the outcome unknown, and trying again is safe', async () => {
    const { at, catalog, sql } = await openPool()
    // A deferred trigger runs inside COMMIT.
    await sql(`CREATE FUNCTION $.wait() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_sleep(20); RETURN NULL; END'`)
    await sql(`CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON $.entries DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION $.wait()`)
    const put = failure(catalog.publish([inline(1, undefined, pinned())], call()))
    await sleep(300)
    const pids = await at.query<{ pid: number }>(
      "SELECT pid FROM pg_stat_activity WHERE application_name = 'alkblobs' AND query LIKE 'COMMIT%' AND state = 'active'"
    )
    expect(pids).toHaveLength(1)
    await at.query(`SELECT pg_terminate_backend(${pids[0]?.pid}, 5000)`)
    expect(await put).toBe('outcome-unknown')
    await sql('DROP TRIGGER wait ON $.entries')
    expect((await catalog.publish([inline(1, undefined, pinned())], call()))[0]).toHaveProperty('entry')
    expect(await sql('SELECT count(*)::int AS n FROM $.gc_pins')).toEqual([{ n: 1 }])
  })
})

describeServer('a call', () => {
  test('settles within its deadline, though the server does not answer', async () => {
    const { at, catalog } = await openPool({ lockTimeoutMs: 10_000 })
    const other = await stranger(at)
    await other.begin()
    await other.say('LOCK TABLE $.entries IN ACCESS EXCLUSIVE MODE')
    const started = performance.now()
    const codes = await Promise.all([
      failure(catalog.find([keyOf(1)], call(400))),
      failure(catalog.publish([inline(1)], call(400)))
    ])
    expect(performance.now() - started).toBeLessThan(2_000)
    expect(codes.every(code => code === 'transient' || code === 'conflict')).toBe(true)
    await other.rollback()
    expect(await catalog.find([keyOf(1)], call())).toEqual([undefined])
  })

  test('that was cancelled or is late before it began does nothing', async () => {
    const { catalog } = await openPool()
    const reason = new Error('enough')
    const cancelled = call(1_000, AbortSignal.abort(reason))
    await expect(catalog.publish([inline(1)], cancelled)).rejects.toBe(reason)
    await expect(catalog.find([keyOf(1)], cancelled)).rejects.toBe(reason)
    expect(await failure(catalog.publish([inline(1)], call(-1)))).toBe('transient')
    expect(await catalog.find([keyOf(1)], call())).toEqual([undefined])
  })

  test('that fails fails no other call that was joined with it', async () => {
    const { catalog, sql } = await openPool()
    await sql('ALTER TABLE $.entries ADD CHECK (length <> 13)')
    const outcomes = await Promise.all(
      [7, 13, 8].map(n => failure(catalog.publish([inline(n, new Uint8Array(n))], call())))
    )
    expect(outcomes).toEqual(['resolved', 'unknown', 'resolved'])
  })
})
