// What goes wrong while bodies are written, read and dropped: nothing is left, nothing hangs, and every failure has its name.
import { execFile } from 'node:child_process'
import { existsSync } from 'node:fs'
import { promisify } from 'node:util'
import type { StageId } from '@alkblobs/core/engine'
import { Commits, startServer } from '@alkblobs/testkit'
import { expect, it } from 'vitest'
import { pglo } from '../src/index.js'
import {
  atEnd,
  backends,
  call,
  claimed,
  context,
  count,
  database,
  eventually,
  failure,
  keyOf,
  MIB,
  newStage,
  objects,
  onServer,
  open,
  pattern,
  putBody,
  readRange,
  rows,
  shared,
  sooner,
  terminate,
  waitingWriter,
  within
} from './support.js'

onServer('a body whose session dies', () => {
  it.each(['before a write', 'before the seal'])('%s fails with a name, and leaves nothing', async phase => {
    const db = await database()
    const { engine, bodies } = await claimed(db)
    const stage = newStage()
    const writer = await bodies.create(stage, {}, call)
    await writer.write(pattern(3 * MIB))
    await terminate(db, await waitingWriter(db))
    const next = phase === 'before a write' ? writer.write(pattern(3 * MIB)) : writer.seal(keyOf(pattern(3 * MIB)))
    expect(await failure(engine, next)).toBe('transient')
    await writer.discard()
    expect(await bodies.drop([stage], call)).toEqual([{ what: stage }])
    expect([await objects(db), await rows(db)]).toEqual([0, 0])
    const locator = await putBody(bodies, [pattern(3 * MIB)])
    expect((await readRange(bodies, locator)).equals(pattern(3 * MIB))).toBe(true)
  })

  it('in the middle of writes, many times, leaves only what was sealed', async () => {
    const db = await database()
    const { engine, bodies } = await claimed(db)
    let isOver = false
    const killer = (async () => {
      while (!isOver) {
        const busy = await backends(db, 'active')
        for (const { pid } of busy) await db.query('SELECT pg_terminate_backend($1::int)', [pid])
        await new Promise(resolve => setTimeout(resolve, 15))
      }
    })()
    const results: string[] = []
    for (let n = 0; n < 30; n++) {
      const put = async () => {
        const writer = await bodies.create(newStage(), {}, call)
        try {
          for (let at = 0; at < 4; at++) await writer.write(pattern(MIB))
          await writer.seal(keyOf(pattern(4 * MIB)))
        } catch (error) {
          await writer.discard()
          throw error
        }
      }
      results.push((await failure(engine, put())) ?? 'sealed')
    }
    isOver = true
    await killer
    expect(new Set(results)).toContain('transient')
    expect([...new Set(results)].every(result => /^(sealed|transient|outcome-unknown)$/.test(result))).toBe(true)
    await eventually(async () => (await backends(db, 'idle in transaction')).length === 0)
    expect(await objects(db)).toBe(await rows(db))
    // By another store: an idle session of this one may have been hit last, and not know it yet.
    const { found } = await (await open(db)).bodies.scan(undefined, 99, call)
    expect(found.every(({ sealed }) => sealed?.whole === true)).toBe(true)
    expect(found.length).toBeGreaterThanOrEqual(results.filter(result => result === 'sealed').length)
  })

  it('whose key cannot be kept leaves nothing, in one statement or in a transaction', async () => {
    const db = await database()
    const { bodies } = await claimed(db)
    await db.query('ALTER TABLE lo.lo_entries ADD CONSTRAINT no_more CHECK (length < 5)')
    for (const length of [10, 2 * MIB]) {
      await expect(putBody(bodies, [pattern(length)])).rejects.toMatchObject({ code: '23514' })
      expect([await objects(db), await rows(db)]).toEqual([0, 0])
    }
  })
})

onServer('a commit whose answer is lost', () => {
  it.each(['answer', 'request'] as const)('(lost: %s) is a body, or none, as the seal says', async what => {
    const db = await database()
    const commits = await Commits.to(db)
    atEnd(() => commits.close())
    const { engine, bodies } = await claimed({ url: commits.url(db.url) })
    const writer = await bodies.create(newStage(), {}, call)
    await writer.write(pattern(2 * MIB))
    commits.loseNext(what)
    const sealed = writer.seal(keyOf(pattern(2 * MIB)))
    if (what === 'answer') {
      expect((await readRange(bodies, await sealed)).equals(pattern(2 * MIB))).toBe(true)
      expect([await objects(db), await rows(db)]).toEqual([1, 1])
    } else {
      expect(await failure(engine, sealed)).toBe('transient')
      expect([await objects(db), await rows(db)]).toEqual([0, 0])
      await writer.discard()
    }
    expect(commits.lost).toBe(1)
  })

  it.each([
    [10, false],
    [10, true],
    [2 * MIB, false],
    [2 * MIB, true]
  ])('of %i bytes and did not take effect is taken back (it did after all: %s)', async (length, tookEffect) => {
    const db = await database()
    const { engine, bodies } = await claimed(db)
    await db.query(`CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_sleep(60); RETURN NULL; END $$`)
    await db.query(`CREATE CONSTRAINT TRIGGER slow AFTER INSERT ON lo.lo_entries DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION public.slow()`)
    const stage = newStage()
    const writer = await bodies.create(stage, {}, call)
    await writer.write(pattern(length))
    const sealed = failure(engine, writer.seal(keyOf(pattern(length))))
    const sleeping = () =>
      db.query<{ pid: number }>(
        "SELECT pid FROM pg_stat_activity WHERE wait_event = 'PgSleep' AND datname = current_database()"
      )
    await eventually(async () => (await sleeping()).length === 1)
    // Whoever drops the stage now must not be told that nothing is there.
    expect(engine.classify((await bodies.drop([stage], call))[0]?.error)).toBe('conflict')
    await terminate(db, (await sleeping())[0]?.pid as number)
    expect(await sealed).toBe('transient')
    // The other way it may have gone: it took effect, and only the answer did not come.
    if (tookEffect) {
      await db.query('DROP TRIGGER slow ON lo.lo_entries')
      await putBody(bodies, [pattern(length)], stage)
    }
    await writer.discard()
    expect([await objects(db), await rows(db)]).toEqual([0, 0])
  })
})

onServer('a producer that stalls', () => {
  it('loses its body, its transaction and its place', async () => {
    const db = await database()
    const { engine, bodies } = await claimed(db, { poolMax: 2, stageIdleTimeoutMs: 200 })
    const stalled = await bodies.create(newStage(), {}, call)
    await stalled.write(pattern(2 * MIB))
    // The one place for a transaction is free once the stalled body is given up.
    const next = await bodies.create(newStage(), {}, within(20_000))
    await next.write(pattern(2 * MIB))
    await next.seal(keyOf(pattern(2 * MIB)))
    expect(await failure(engine, stalled.write(pattern(1)))).toBe('transient')
    await expect(stalled.seal(keyOf(pattern(1)))).rejects.toThrow('stageIdleTimeoutMs')
    await stalled.discard()
    expect(await backends(db, 'idle in transaction')).toHaveLength(0)
    expect([await objects(db), await rows(db)]).toEqual([1, 1])
  })

  it('that needs no transaction yet has all the time it wants', async () => {
    const { bodies } = await claimed(await database(), { stageIdleTimeoutMs: 100 })
    const writer = await bodies.create(newStage(), {}, call)
    await writer.write(pattern(MIB))
    await new Promise(resolve => setTimeout(resolve, 400))
    const locator = await writer.seal(keyOf(pattern(MIB)))
    expect(await bodies.length(locator, call)).toBe(MIB)
  })

  it('is ended by the server where the process is stopped itself', async () => {
    const db = await database()
    const { bodies } = await claimed(db, { stageIdleTimeoutMs: 1_234 })
    const writer = await bodies.create(newStage(), {}, call)
    await db.query(`CREATE FUNCTION public.seen() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'idle %', current_setting('idle_in_transaction_session_timeout'); END $$`)
    await db.query('CREATE TRIGGER seen BEFORE INSERT ON lo.lo_entries FOR EACH ROW EXECUTE FUNCTION public.seen()')
    await writer.write(pattern(2 * MIB))
    await expect(writer.seal(keyOf(pattern(1)))).rejects.toThrow('idle 6234ms')
  })
})

onServer('too many writers', () => {
  it('wait their turn, and fail as exhausted when their patience ends', async () => {
    const db = await database()
    const { engine, bodies } = await claimed(db, { poolMax: 4 })
    const writers = await Promise.all(Array.from({ length: 3 }, () => bodies.create(newStage(), {}, call)))
    for (const writer of writers) await writer.write(pattern(2 * MIB))
    const late = await bodies.create(newStage(), {}, within(1_500))
    expect(await failure(engine, late.write(pattern(2 * MIB)))).toBe('exhausted')
    await late.discard()
    const waiting = putBody(bodies, [pattern(2 * MIB)])
    for (const writer of writers) await writer.discard()
    expect(await bodies.length(await waiting, call)).toBe(2 * MIB)
    expect(await backends(db, 'idle in transaction')).toHaveLength(0)
  })
})

onServer('one item that cannot be dropped', () => {
  // Refused for itself, or in words that are otherwise said of the whole server.
  it.each(['P0001', '58030'])('fails alone, as %s', async state => {
    const db = await database()
    const { bodies } = await claimed(db)
    const stages = Array.from({ length: 250 }, newStage)
    await Promise.all(stages.map(stage => putBody(bodies, [Buffer.from(stage)], stage)))
    const stuck = stages[123] as StageId
    await db.query(`CREATE FUNCTION public.stuck() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN RAISE EXCEPTION 'stuck' USING ERRCODE = '${state}'; END $$`)
    await db.query(`CREATE TRIGGER stuck BEFORE DELETE ON lo.lo_entries FOR EACH ROW
      WHEN (OLD.stage = '${stuck}') EXECUTE FUNCTION public.stuck()`)
    const results = await bodies.drop(stages, call)
    expect(results.filter(({ error }) => error !== undefined).map(({ what }) => what)).toEqual([stuck])
    expect([await objects(db), await rows(db)]).toEqual([1, 1])
    await db.query('DROP TRIGGER stuck ON lo.lo_entries')
    expect(await bodies.drop([stuck], call)).toEqual([{ what: stuck }])
  })

  it('because it takes too long leaves what comes after it for later, and says so of each before the deadline', async () => {
    const db = await database()
    const { engine, bodies } = await claimed(db)
    const stages = Array.from({ length: 350 }, newStage)
    const done = stages.slice(0, 100)
    await Promise.all(stages.map(stage => putBody(bodies, [Buffer.from(stage)], stage)))
    await db.query(`CREATE FUNCTION public.slow() RETURNS trigger LANGUAGE plpgsql AS
      $$ BEGIN PERFORM pg_sleep(600); RETURN old; END $$`)
    await db.query(`CREATE TRIGGER slow BEFORE DELETE ON lo.lo_entries FOR EACH ROW
      WHEN (OLD.stage = '${stages[123]}') EXECUTE FUNCTION public.slow()`)
    const results = await sooner(5_000, bodies.drop(stages, within(5_000)))
    expect(results.map(({ what }) => what)).toEqual(stages)
    const failed = results.filter(({ error }) => error !== undefined)
    expect(failed.map(({ what }) => what)).toEqual(stages.slice(done.length))
    expect(new Set(failed.map(({ error }) => engine.classify(error)))).toEqual(new Set(['transient']))
    await eventually(async () => (await rows(db)) === stages.length - done.length)
    await db.query('DROP TRIGGER slow ON lo.lo_entries')
    expect(await bodies.drop(stages, call)).toEqual(stages.map(what => ({ what })))
    expect([await objects(db), await rows(db)]).toEqual([0, 0])
  })

  it('because it is being written is told so in time, though there was none to look again', async () => {
    const db = await database()
    const { engine, bodies } = await claimed(db)
    const busy = newStage()
    const writer = await bodies.create(busy, {}, call)
    await writer.write(pattern(2 * MIB))
    await waitingWriter(db)
    const [result] = await sooner(1_000, bodies.drop([busy], within(1_000)))
    expect(engine.classify(result?.error)).toBe('conflict')
    await writer.discard()
  })
})

onServer('a call that is over', () => {
  it('begins nothing', async () => {
    const db = await database()
    const { engine, bodies } = await claimed(db)
    const locator = await putBody(bodies, [pattern(10)])
    const signal = AbortSignal.abort(new Error('no longer wanted'))
    const late = { deadlineMs: performance.now() - 1 }
    for (const over of [{ ...call, signal }, late]) {
      const kind = over === late ? 'transient' : 'unknown'
      expect(await failure(engine, bodies.length(locator, over))).toBe(kind)
      expect(await failure(engine, bodies.create(newStage(), {}, over))).toBe(kind)
      expect(await failure(engine, bodies.scan(undefined, 1, over))).toBe(kind)
      expect(await failure(engine, bodies.claim(shared, over))).toBe(kind)
      const reader = bodies.read(locator, { start: 0, end: 1 }, over)[Symbol.asyncIterator]()
      expect(await failure(engine, reader.next())).toBe(kind)
      expect(engine.classify((await bodies.drop([locator], over))[0]?.error)).toBe(kind)
    }
    expect(await objects(db)).toBe(1)
  })
})

onServer('closing', () => {
  it('frees every session, those of forgotten writers and readers too', async () => {
    const db = await database()
    const { engine, bodies } = await open(db)
    await bodies.claim({ ...shared, mode: 'exclusive' }, call)
    const locator = await putBody(bodies, [pattern(2 * MIB)])
    const forgotten = await bodies.create(newStage(), {}, call)
    await forgotten.write(pattern(2 * MIB))
    await bodies
      .read(locator, { start: 0, end: 2 * MIB }, call)
      [Symbol.asyncIterator]()
      .next()
    await engine.close()
    const sessions = "pg_stat_activity WHERE datname = current_database() AND application_name <> 'alkblobs-testkit'"
    await eventually(async () => (await count(db, sessions)) === 0)
    expect([await objects(db), await rows(db)]).toEqual([1, 1])
  })
})

onServer('vacuumlo', () => {
  const find = () =>
    ['/usr/bin', ...[14, 15, 16, 17, 18].map(v => `/usr/lib/postgresql/${v}/bin`)].find(folder =>
      existsSync(`${folder}/vacuumlo`)
    )
  const folder = find()
  // The same question that the tool asks: which objects does no column of type oid name?
  it('finds nothing to remove', async () => {
    const db = await database()
    const { bodies } = await claimed(db)
    const locators = await Promise.all([10, 2 * MIB].map(length => putBody(bodies, [pattern(length)])))
    const columns = await db.query<{ name: string }>(
      `SELECT quote_ident(n.nspname) || '.' || quote_ident(c.relname) || ' ' || quote_ident(a.attname) AS name
       FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
       JOIN pg_namespace n ON n.oid = c.relnamespace
       WHERE a.atttypid = 'oid'::regtype AND c.relkind IN ('r', 'm') AND n.nspname !~ '^pg_'`
    )
    expect(columns).toEqual([{ name: 'lo.lo_entries loid' }])
    if (folder !== undefined) {
      const env = { ...process.env, PGPASSWORD: db.password }
      const args = ['-h', db.host, '-p', `${db.port}`, '-U', db.user, '-w', db.database]
      await promisify(execFile)(`${folder}/vacuumlo`, args, { env })
    }
    for (const locator of locators) expect(await bodies.length(locator, call)).toBeGreaterThan(0)
  })
})

onServer('a server that is killed', () => {
  it('in the middle of a body keeps what was sealed and nothing else, and the next call works', async () => {
    const server = await startServer()
    atEnd(() => server.release())
    const engine = await pglo({ url: server.url, schema: 'lo' }).open(context)
    atEnd(() => engine.close())
    const bodies = engine.bodies as NonNullable<typeof engine.bodies>
    await bodies.claim({ ...shared, mode: 'exclusive' }, call)
    const locator = await putBody(bodies, [pattern(2 * MIB)])
    const stage = newStage()
    const writer = await bodies.create(stage, {}, within(5_000))
    await writer.write(pattern(2 * MIB))
    await server.kill()
    expect(await failure(engine, writer.seal(keyOf(pattern(2 * MIB))))).toBe('transient')
    expect(await failure(engine, bodies.length(locator, within(2_000)))).toBe('transient')
    await server.start()
    await writer.discard()
    expect((await readRange(bodies, locator)).equals(pattern(2 * MIB))).toBe(true)
    expect(await bodies.drop([stage], call)).toEqual([{ what: stage }])
    expect((await bodies.scan(undefined, 9, call)).found).toHaveLength(1)
    expect((await bodies.drop([locator], call))[0]?.error).toBeUndefined()
  })
})
