import { expect, test } from 'vitest'
import {
  call,
  describeServer,
  failure,
  inline,
  keyOf,
  openPool,
  pinned,
  sessionWhere,
  sooner,
  stranger,
  terminate
} from './fixture.js'

const ASLEEP = "wait_event = 'PgSleep'"

describeServer('a backend that is killed', () => {
  test('in the middle of a joined put fails no put for good: what had not begun to commit runs again', async () => {
    const { at, catalog, sql } = await openPool()
    // The first transaction that makes anything sleeps in the middle of it; a rollback does not bring the number back.
    await sql('CREATE SEQUENCE $.turns')
    await sql(`CREATE FUNCTION $.first() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN IF nextval(''$.turns'') = 1 THEN PERFORM pg_sleep(600); END IF; RETURN new; END'`)
    await sql('CREATE TRIGGER first BEFORE INSERT ON $.entries FOR EACH ROW EXECUTE FUNCTION $.first()')
    const puts = [1, 2, 3].map(n => failure(catalog.publish([inline(n)], call())))
    await terminate(at, await sessionWhere(at, ASLEEP))
    expect(await Promise.all(puts)).toEqual(['resolved', 'resolved', 'resolved'])
    // All three were in it: what was made alone afterwards is one turn each.
    expect(await sql("SELECT nextval('$.turns')::int AS n")).toEqual([{ n: 5 }])
  })

  test('between calls is not noticed by the next call', async () => {
    const { at, catalog, sessions } = await openPool()
    await catalog.publish([inline(1)], call())
    const held = await sessions.hold(call())
    const pid = await sessions.use(call(), async session => session.pid)
    await terminate(at, pid)
    // The end of a session that was ended later has arrived, so has the end of this one.
    const lost = new Promise(resolve => held.lost.addEventListener('abort', resolve))
    await terminate(at, held.pid)
    await lost
    expect((await catalog.find([keyOf(1)], call()))[0]?.key).toBe(keyOf(1))
    expect((await catalog.publish([inline(2)], call()))[0]?.outcome).toBe('created')
  })

  test('in its commit leaves the outcome unknown, and trying again is safe', async () => {
    const { at, catalog, sql } = await openPool()
    // A deferred trigger runs inside COMMIT.
    await sql(`CREATE FUNCTION $.wait() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_sleep(600); RETURN NULL; END'`)
    await sql(`CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON $.entries DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION $.wait()`)
    const put = failure(catalog.publish([inline(1, undefined, pinned())], call()))
    await terminate(at, await sessionWhere(at, `query LIKE 'COMMIT%' AND ${ASLEEP}`))
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
    const asked = [failure(catalog.find([keyOf(1)], call(400))), failure(catalog.publish([inline(1)], call(400)))]
    const codes = await sooner(1_500, Promise.all(asked))
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
