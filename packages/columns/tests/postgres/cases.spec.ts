/**
 * What broke in other people's stores and drivers, one group for each case: connections and leases, clocks and renewal, sizes and large
 * objects. Cases that are rows of the suite run over these engines with their columns.
 */

import { createHash } from 'node:crypto'
import { BlobTooLargeError, type Store } from '@alkblobs/core'
import { digestHexOf, formatKey } from '@alkblobs/core/engine'
import { startServer } from '@alkblobs/testkit'
import postgres from 'postgres'
import { expect, it } from 'vitest'
import { Child, report } from '../processes/children.js'
import {
  atEnd,
  chunksOf,
  contentOf,
  endOf,
  holds,
  KINDS,
  killSessions,
  MIB,
  onServer,
  sessionsWhere,
  type TestPool,
  testPool,
  untilSessions
} from './pools.js'
import { listen, Wire } from './wire.js'

const nothing = { name: 'nothing', live: () => [] }
/** Any number that nobody else locks by in a database of the test's own. */
const BARRIER = 4_711

/**
 * Holds whoever does that to the table, at the row with this length, until it is opened: waiting is visible, so nothing has to
 * be guessed.
 */
async function barrier(pool: TestPool, event: string, table: string, when: 'BEFORE' | 'AT COMMIT' = 'BEFORE') {
  const { db } = pool
  const { host, port, user, password, database } = db
  const own = postgres({ host, port, user, password, database, max: 1 })
  atEnd(() => own.end({ timeout: 1 }))
  await own.unsafe(`SELECT pg_advisory_lock(${BARRIER})`)
  await db.query(`CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS
    $$ BEGIN PERFORM pg_advisory_xact_lock_shared(${BARRIER}); RETURN coalesce(NEW, OLD); END $$`)
  const on = relationOf(pool, table)
  await db.query(
    when === 'BEFORE'
      ? `CREATE TRIGGER wait BEFORE ${event} ON ${on} FOR EACH ROW EXECUTE FUNCTION public.wait()`
      : `CREATE CONSTRAINT TRIGGER wait AFTER ${event} ON ${on} DEFERRABLE INITIALLY DEFERRED
         FOR EACH ROW EXECUTE FUNCTION public.wait()`
  )
  return {
    reached: () => untilSessions(pool, `wait_event_type = 'Lock' AND wait_event = 'advisory'`),
    open: async () => {
      await own.unsafe(`SELECT pg_advisory_unlock(${BARRIER})`)
      await db.query(`DROP TRIGGER wait ON ${on}`)
    }
  }
}

/** Ends the one session that waits at the barrier. */
async function killWaiting({ db }: TestPool): Promise<void> {
  const rows = await db.query<{ gone: boolean }>(
    `SELECT pg_terminate_backend(pid, 5000) AS gone FROM pg_stat_activity
     WHERE datname = current_database() AND wait_event_type = 'Lock' AND wait_event = 'advisory'`
  )
  expect(rows).toEqual([{ gone: true }])
}

/** A table of the catalog, or another with its schema. */
const relationOf = ({ schema }: TestPool, table: string) => (table.includes('.') ? table : `${schema}.${table}`)

const count = async (pool: TestPool, table: string) =>
  (await pool.db.query<{ n: number }>(`SELECT count(*)::int AS n FROM ${relationOf(pool, table)}`))[0]?.n

const released = async (putting: Promise<{ key: string; release(): Promise<void> }>) => {
  const receipt = await putting
  await receipt.release()
  return receipt.key
}

onServer('O20, O24: a session that dies in the middle of a transaction', () => {
  it.each([
    ['INSERT', 'entries', 100],
    ['INSERT', 'gc_pins', 100],
    ['INSERT', 'entries', 3 * MIB],
    ['DELETE', 'stages', 3 * MIB]
  ])(
    'at %s of %s takes the whole of it along, and a retry brings the whole back (%i bytes)',
    async (event, table, length) => {
      const pool = await testPool('postgres + pglo')
      const store = await pool.open()
      await released(store.put('the pool is there'))
      await expect.poll(() => count(pool, 'gc_pins')).toBe(0)
      const { reached, open } = await barrier(pool, event, table)
      const bytes = contentOf('killed', length)
      const putting = store.put(chunksOf(bytes))
      const end = endOf(putting)
      await reached()
      await killWaiting(pool)
      // The slot of the dead session is taken by others at once; nothing of its transaction may run there.
      const others = await Promise.all([1, 2, 3, 4].map(n => store.has(`blake3:${'0'.repeat(63)}${n}`)))
      expect(others).toEqual([false, false, false, false])
      await open()
      const { how } = await end
      report(`killed at ${event} of ${table}: ${how}`)
      expect(how).toMatch(/^(done|transient|outcome-unknown)$/)
      const isThere = how === 'done' ? 1 : 0
      const key = how === 'done' ? (await putting).key : undefined
      expect([await count(pool, 'entries'), await count(pool, 'gc_pins')]).toEqual([1 + isThere, isThere])
      if (key !== undefined) expect(await holds(store, key, bytes)).toBe(true)
      expect(await released(store.put(chunksOf(bytes)))).toBeDefined()
      expect(await count(pool, 'entries')).toBe(2)
      expect(await count(pool, 'stages')).toBe(0)
    }
  )

  it('in the middle of a removal removes nothing, and its sweep says that the lease is lost', async () => {
    const pool = await testPool('postgres + pglo')
    const store = await pool.open()
    store.protect(nothing)
    for (const length of [100, 20_000]) await released(store.put(contentOf('dead', length)))
    expect(await store.sweep()).toMatchObject({ candidatesStaged: 2 })
    const { reached, open } = await barrier(pool, 'DELETE', 'entries')
    const sweeping = store.sweep()
    await reached()
    await killWaiting(pool)
    expect(await sweeping).toMatchObject({ aborted: 'LeaseLost', deleted: 0, bytesDeleted: 0 })
    await open()
    expect(await count(pool, 'entries')).toBe(2)
    expect(await store.sweep()).toMatchObject({ deleted: 2, bytesDeleted: 20_100 })
  })
})

onServer('a commit whose answer is lost', () => {
  it.each([
    ['a small blob', 'entries', 100],
    ['a large one', 'entries', 3 * MIB],
    ['the body of a large one', 'alkblobs_pglo.lo_entries', 3 * MIB]
  ])('of %s is found out or said to be unknown, and the same put converges', async (_, table, length) => {
    const pool = await testPool('postgres + pglo')
    const wire = await Wire.to(pool.db)
    const [store, other] = [await pool.open({ port: wire.port }), await pool.open()]
    await released(store.put(contentOf('the pool is there', 20_000)))
    const { reached, open } = await barrier(pool, 'INSERT', table, 'AT COMMIT')
    const bytes = contentOf('unheard', length)
    const end = endOf(released(store.put(chunksOf(bytes))))
    await reached()
    wire.silence()
    await open()
    await expect.poll(() => count(pool, table)).toBe(2)
    // The answer comes a moment after what it tells of can be seen.
    await expect.poll(() => wire.dropped).toBeGreaterThan(0)
    wire.heal()
    wire.reset()
    // What became of it can be known unless somebody else's checkpoint comes in between, and other tests make and remove databases.
    const { how } = await end
    expect(['done', 'outcome-unknown']).toContain(how)
    // An entry that was made has its bytes; a body of which nobody could tell is gone again.
    expect(await count(pool, 'entries')).toBe(how === 'done' || table === 'entries' ? 2 : 1)
    expect(await other.verify()).toMatchObject({ clean: true })
    const key = await released(store.put(chunksOf(bytes)))
    expect(await holds(other, key, bytes)).toBe(true)
    await expect.poll(() => count(pool, 'gc_pins')).toBe(0)
    expect(await pool.oracle.counts()).toMatchObject({ stages: 0, trash: 0, bodies: length > 10_000 ? 2 : 1 })
  })
})

onServer('O21: a way that goes silent', () => {
  it('costs each call its deadline, and neither the next one nor the end of the store', async () => {
    const pool = await testPool('postgres + pglo')
    const wire = await Wire.to(pool.db)
    const timeoutMs = 1_000
    const store = await pool.open({ port: wire.port, operationTimeoutMs: timeoutMs, connectTimeoutMs: timeoutMs })
    const key = await released(store.put('something'))
    wire.silence()
    const calls = [store.get(key), store.stat(key), store.pin(key), store.usage(), store.put('more')]
    for (const { how, ms } of await Promise.all(calls.map(endOf))) {
      expect(how).toMatch(/^(transient|outcome-unknown)$/)
      expect(ms).toBeLessThan(1.2 * timeoutMs + 100)
    }
    expect(wire.dropped).toBeGreaterThan(0)
    wire.heal()
    expect((await store.get(key))?.size).toBe(9)
    wire.silence()
    const start = performance.now()
    await store.close()
    expect(performance.now() - start).toBeLessThan(4 * timeoutMs)
    wire.heal()
  })
})

onServer('O22: a server that cannot be had yet', () => {
  it('and a proxy that hangs up before it are asked a few times, and used when they are there', async () => {
    const pool = await testPool('postgres + pglo')
    const wire = await Wire.to(pool.db)
    wire.refuse()
    expect((await endOf(pool.open({ port: wire.port, connectTimeoutMs: 2_000 }))).how).toBe('transient')
    expect(wire.connects).toBeLessThan(10)
    wire.heal()
    const store = await pool.open({ port: wire.port })
    const key = await released(store.put('something'))
    wire.refuse()
    const before = wire.connects
    for (let n = 0; n < 5; n++) expect((await endOf(store.get(key))).how).toBe('transient')
    expect(wire.connects - before).toBeLessThan(20)
    wire.heal()
    expect((await store.get(key))?.size).toBe(9)
  })

  it('that is starting up says so', async () => {
    const pool = await testPool('postgres')
    const starting = Buffer.from('SFATAL\0VFATAL\0C57P03\0Mthe database system is starting up\0\0')
    const length = Buffer.alloc(4)
    length.writeInt32BE(starting.length + 4)
    const port = await listen(socket =>
      socket.once('data', () => socket.end(Buffer.concat([Buffer.from('E'), length, starting])))
    )
    expect((await endOf(pool.open({ port }))).how).toBe('transient')
  })
})

const ADVISORY = `SELECT 1 FROM pg_locks WHERE locktype = 'advisory'
  AND database = (SELECT oid FROM pg_database WHERE datname = current_database())`

const actorOver = ({ db, schema }: TestPool, given: object) =>
  new Child('../../postgres/workers/actor.mjs', {
    given: { url: db.url, schema, threshold: 10_000, ...given },
    limitMs: 25_000
  })

onServer('O23: the lock of a sweep', () => {
  it('is free after success, after an abort and after the death of its process, for any other', async () => {
    const pool = await testPool('postgres + pglo')
    const [one, other] = [await pool.open(), await pool.open()]
    other.protect(nothing)
    await released(one.put('something'))
    const failing = one.protect({ name: 'broken', live: () => Promise.reject(new Error('no answer')) })
    expect(await one.sweep()).toMatchObject({ aborted: 'ProtectFailed', source: 'broken' })
    expect(await pool.db.query(ADVISORY)).toEqual([])
    failing.remove()
    one.protect(nothing)
    expect((await one.sweep()).aborted).toBeUndefined()
    expect(await pool.db.query(ADVISORY)).toEqual([])
    const actor = actorOver(pool, { act: 'sweep', keepsSource: true })
    await actor.next()
    actor.tell()
    expect(await actor.next()).toEqual({ at: 'sources' })
    expect(await other.sweep()).toMatchObject({ aborted: 'SweeperLock' })
    await actor.kill()
    await expect.poll(() => pool.db.query(ADVISORY), { timeout: 5_000 }).toEqual([])
    expect((await other.sweep()).aborted).toBeUndefined()
  })

  it('is given back before the sweep ends, however long the way to the server is', async () => {
    const pool = await testPool('postgres')
    const wire = await Wire.to(pool.db)
    const [far, near] = [await pool.open({ port: wire.port }), await pool.open()]
    for (const store of [far, near]) store.protect(nothing)
    await released(near.put('something'))
    await near.sweep()
    wire.lagMs = 20
    expect((await far.sweep()).aborted).toBeUndefined()
    expect((await near.sweep()).aborted).toBeUndefined()
  })
})

onServer('O15: a sweeper that is killed', () => {
  it('leaves whole entries, and the next sweep finishes its work', async () => {
    const pool = await testPool('postgres + pglo')
    const store = await pool.open()
    store.protect(nothing)
    let deletedByTheKilled = 0
    for (let kill = 0; kill < 2; kill++) {
      const actor = actorOver(pool, { act: 'sweep' })
      await Promise.all(
        Array.from({ length: 100 }, (_, n) => released(store.put(contentOf(`${kill} ${n}`, n % 4 === 0 ? 11_000 : 50))))
      )
      expect(await store.sweep()).toMatchObject({ candidatesStaged: 100 })
      await actor.next()
      const { reached, open } = await barrier(pool, 'DELETE', kill === 0 ? 'entries' : 'trash')
      actor.tell()
      await reached()
      await actor.kill()
      await open()
      await pool.db.query('DROP FUNCTION public.wait()')
      await expect.poll(() => pool.db.query(ADVISORY), { timeout: 5_000 }).toEqual([])
      const { entries } = await store.usage()
      deletedByTheKilled += 100 - entries
      expect(await store.verify()).toMatchObject({ corrupt: [], dangling: [], entries })
      expect(await store.sweep()).toMatchObject({ deleted: entries, failed: [] })
      expect(await pool.oracle.counts()).toMatchObject({ bodies: 0, inlineEntries: 0, stages: 0, trash: 0, window: 0 })
    }
    // One was killed in its first removal, one when it had removed everything.
    expect(deletedByTheKilled).toBe(100)
  })
})

onServer('O19: an upload whose process is killed', () => {
  it('leaves a stage that expires, and nothing else', async () => {
    const pool = await testPool('postgres + pglo')
    const store = await pool.open()
    store.protect(nothing)
    const actor = actorOver(pool, { act: 'upload' })
    await actor.next()
    await untilSessions(pool, `state = 'idle in transaction'`)
    await actor.kill()
    await untilSessions(pool, `state = 'idle in transaction'`, 0)
    expect(await pool.oracle.counts()).toMatchObject({ stages: 1, bodies: 0 })
    await pool.expire()
    expect(await store.sweep()).toMatchObject({ stagesReclaimed: 1 })
    expect(await pool.oracle.counts()).toMatchObject({ stages: 0, trash: 0, bodies: 0 })
  })
})

onServer('O25: a pool of two connections', () => {
  it('is enough for puts that read from the same store and sources that ask it', async () => {
    const pool = await testPool('postgres + pglo')
    const store = await pool.open({ poolMax: 2 })
    const bytes = contentOf('copied', 2 * MIB)
    const key = await released(store.put(bytes))
    const copies = await Promise.all(
      Array.from({ length: 6 }, async (_, n) => {
        const source = async function* () {
          yield Buffer.from(`copy ${n}`)
          yield* (await store.get(key)) as AsyncIterable<Uint8Array>
        }
        return released(store.put(source()))
      })
    )
    store.protect({
      name: 'asks the store',
      live: async () => ((await store.stat(key)) === undefined ? [] : [key, ...copies])
    })
    expect(await store.sweep()).toMatchObject({ live: 7 })
    // Those that have ended are listed for a moment longer.
    await expect.poll(() => sessionsWhere(pool)).toBeLessThanOrEqual(4)
  })
})

onServer('O26: a server that crashes while a pin is held and nothing is done', () => {
  it('costs neither the process nor the pin, which is renewed when it is back', async () => {
    const server = await startServer()
    atEnd(() => server.release())
    const pool = await testPool('postgres + pglo', server)
    const store = await pool.open({ pinTtlMs: 2_000 })
    const receipt = await store.put('held')
    const expiry = async () =>
      (await pool.db.query<{ at: Date }>(`SELECT expires_at AS at FROM ${pool.schema}.gc_pins`))[0]?.at
    await server.kill('SIGQUIT')
    await server.start()
    const before = await expiry()
    await expect.poll(async () => Number(await expiry()) > Number(before), { timeout: 5_000 }).toBe(true)
    await expect.poll(() => receipt.pin?.held).toBe(true)
    await server.stop()
    // Nobody could renew it in time, so nobody is told that it holds.
    await expect.poll(() => receipt.pin?.held, { timeout: 6_000 }).toBe(false)
    await server.start()
    await released(store.put('more'))
  })
})

onServer('O27: the same things at the same time', () => {
  it('is one entry and no conflict, whatever the order', async () => {
    const pool = await testPool('postgres + pglo')
    const stores = await Promise.all([1, 2, 3].map(() => pool.open()))
    const storeOf = (n: number) => stores[n % 3] as Store
    for (const [times, length] of [
      [64, 100],
      [16, 20_000]
    ] as const) {
      const bytes = contentOf('same', length)
      const keys = await Promise.all(Array.from({ length: times }, (_, n) => released(storeOf(n).put(chunksOf(bytes)))))
      expect(new Set(keys).size).toBe(1)
    }
    expect(await count(pool, 'entries')).toBe(2)
    const keys = await Promise.all(Array.from({ length: 50 }, (_, n) => released(storeOf(n).put(`entry ${n}`))))
    const inAnyOrder = (n: number) => keys.map((_, i) => keys[(i * 7 + n * 13) % 50] as string)
    const pins = await Promise.all(
      Array.from({ length: 16 }, (_, n) => Promise.all(inAnyOrder(n).map(key => storeOf(n).pin(key))))
    )
    expect(pins.flat().every(pin => pin?.held === true)).toBe(true)
    await Promise.all(pins.flat().map(pin => pin?.release()))
    const deleted = await Promise.all(Array.from({ length: 6 }, (_, n) => storeOf(n).deleteMany(inAnyOrder(n))))
    const outcomes = deleted.flatMap(each => [...each.values()])
    expect(outcomes.filter(outcome => outcome === 'deleted')).toHaveLength(50)
    expect(new Set(outcomes)).toEqual(new Set(['deleted', 'absent']))
    expect(await pool.oracle.counts()).toMatchObject({ bodies: 1, stages: 0, trash: 0 })
  })
})

onServer('O28: a process that sleeps past the life of its pin', () => {
  it('finds it lost, and never brings it back', async () => {
    const pool = await testPool('postgres + pglo')
    const store = await pool.open()
    store.protect(nothing)
    const key = await released(store.put('held by another'))
    const actor = actorOver(pool, { act: 'pin', key, pinTtlMs: 1_500 })
    const { held, pid } = await actor.next<{ held: boolean; pid: number }>()
    expect(held).toBe(true)
    await expect.poll(() => count(pool, 'gc_pins')).toBe(1)
    process.kill(pid, 'SIGSTOP')
    // The time of its pin runs out while it sleeps.
    await pool.oracle.expirePins?.()
    expect(await store.sweep()).toMatchObject({ pinsReaped: 1, candidatesStaged: 1 })
    expect(await store.sweep()).toMatchObject({ deleted: 1 })
    process.kill(pid, 'SIGCONT')
    actor.tell({ ask: 'lost' })
    expect(await actor.next()).toEqual({ held: false, has: false })
    expect([await count(pool, 'entries'), await count(pool, 'gc_pins')]).toEqual([0, 0])
    actor.tell({ ask: 'end' })
    await actor.finish()
  })
})

onServer('O29: clocks in three zones', () => {
  it('agree on the instant, because no time is stored without its zone', async () => {
    const pool = await testPool('postgres')
    await pool.db.query(`ALTER DATABASE ${pool.db.database} SET timezone = 'America/Los_Angeles'`)
    const zone = process.env.TZ
    process.env.TZ = 'Asia/Tokyo'
    atEnd(() => {
      if (zone === undefined) delete process.env.TZ
      else process.env.TZ = zone
    })
    const store = await pool.open({ pinTtlMs: 30_000 })
    const receipt = await store.put('held')
    const [row] = await pool.db.query<{ left: number }>(
      `SELECT extract(epoch FROM expires_at - clock_timestamp())::float8 AS left FROM ${pool.schema}.gc_pins`
    )
    expect(row?.left).toBeGreaterThan(20)
    expect(row?.left).toBeLessThanOrEqual(30)
    const zoneless = await pool.db.query(
      `SELECT table_name, column_name FROM information_schema.columns WHERE table_schema IN ($1, 'alkblobs_pglo')
       AND data_type IN ('timestamp without time zone', 'date', 'time without time zone')`,
      [pool.schema]
    )
    expect(zoneless).toEqual([])
    expect(receipt.pin?.held).toBe(true)
  })
})

onServer('O30: a pin that is renewed', () => {
  it('outlives a tick that fails, and is lost once when its row is gone', async () => {
    const pool = await testPool('postgres')
    const wire = await Wire.to(pool.db)
    const store = await pool.open({ port: wire.port, pinTtlMs: 1_500 })
    const receipt = await store.put('held')
    const pin = receipt.pin
    let losses = 0
    pin?.signal.addEventListener('abort', () => losses++)
    const refused = wire.connects
    wire.refuse()
    // The tick finds its connection gone, and comes once more.
    await expect.poll(() => wire.connects - refused, { timeout: 3_000 }).toBeGreaterThan(0)
    wire.heal()
    const [{ at } = { at: new Date(0) }] = await pool.db.query<{ at: Date }>(
      `SELECT expires_at AS at FROM ${pool.schema}.gc_pins`
    )
    const expiry = async () =>
      (await pool.db.query<{ at: Date }>(`SELECT expires_at AS at FROM ${pool.schema}.gc_pins`))[0]?.at
    await expect.poll(async () => Number(await expiry()) > Number(at), { timeout: 3_000 }).toBe(true)
    await expect.poll(() => pin?.held).toBe(true)
    await pool.db.query(`DELETE FROM ${pool.schema}.gc_pins`)
    await expect.poll(() => pin?.held, { timeout: 3_000 }).toBe(false)
    const connects = wire.connects
    await new Promise(resolve => setTimeout(resolve, 1_100))
    expect([losses, await count(pool, 'gc_pins'), wire.connects]).toEqual([1, 0, connects])
  })
})

onServer('O31: the longest inline body', () => {
  it('is kept to its last byte, and one more is refused before anything is sent', async () => {
    const pool = await testPool('postgres')
    const longest = 16 * MIB
    const store = await pool.open({ threshold: longest })
    const bytes = contentOf('longest', longest)
    const key = await released(store.put(chunksOf(bytes)))
    expect(await holds(store, key, bytes)).toBe(true)
    await expect(store.put(Buffer.alloc(longest + 1))).rejects.toBeInstanceOf(BlobTooLargeError)
    expect(await count(pool, 'entries')).toBe(1)
    await expect(pool.open({ threshold: longest + 1 })).rejects.toMatchObject({ code: 'ERR_BLOB_INVALID_ARGUMENT' })
  })
})

onServer('O32: more keys than a statement has places for parameters', () => {
  it('are swept exactly, by a source that enumerates them and by a table with NULLs in it', async () => {
    const pool = await testPool('postgres')
    const store = await pool.open()
    await released(store.put('the pool is there'))
    const [all, live] = [70_000, 69_000]
    const digestOf = (n: number) => createHash('sha256').update(`${n}`).digest()
    await pool.db.query(`INSERT INTO ${pool.schema}.entries (key, length, body)
      SELECT sha256(n::text::bytea), 1, 'x' FROM generate_series(1, ${all}) n`)
    const enumerated = store.protect({
      name: 'documents',
      *live() {
        for (let n = 1; n <= live; n++) yield formatKey('blake3', digestOf(n))
      }
    })
    // One of them is the first that was put.
    expect(await store.sweep()).toMatchObject({ scanned: all + 1, live, candidatesStaged: all - live + 1 })
    expect(await store.sweep()).toMatchObject({ deleted: all - live + 1, scanned: live, live })
    await pool.db.query(`CREATE TABLE public.files (key bytea);
      INSERT INTO public.files SELECT sha256(n::text::bytea) FROM generate_series(1, ${live - 500}) n;
      INSERT INTO public.files VALUES (NULL), (NULL); CREATE INDEX ON public.files (key)`)
    await store.protect({ table: 'files', column: 'key' })
    enumerated.remove()
    expect(await store.sweep()).toMatchObject({ candidatesStaged: 500, live: live - 500 })
    expect(await store.sweep()).toMatchObject({ deleted: 500 })
    expect(await count(pool, 'entries')).toBe(live - 500)
  })
})

onServer('O33: large objects and their rows', () => {
  it.each(['postgres + pglo', 'sqlite + pglo'] as const)(
    'come and go together over %s, whatever happens to a put',
    async kind => {
      const pool = await testPool(kind)
      const store = await pool.open()
      store.protect(nothing)
      const halves = async () => {
        const [row] = await pool.db.query<{ objects: number; rows: number }>(
          `SELECT (SELECT count(*)::int FROM pg_largeobject_metadata) AS objects, (SELECT count(*)::int FROM alkblobs_pglo.lo_entries) AS rows`
        )
        return [row?.objects, row?.rows]
      }
      const bytes = contentOf('large', 2.5 * MIB)
      const key = await released(store.put(chunksOf(bytes)))
      expect(await halves()).toEqual([1, 1])
      // Those that lose against it unlink what they made.
      await Promise.all(Array.from({ length: 4 }, () => released(store.put(chunksOf(bytes)))))
      expect(await halves()).toEqual([1, 1])
      for (const failsAfter of [0, 10_001, 2 * MIB + 1]) {
        const source = async function* () {
          yield* chunksOf(contentOf('failing', failsAfter))
          throw new Error('no more')
        }
        await expect(store.put(source())).rejects.toThrow('no more')
        await expect(
          store.put(chunksOf(contentOf('failing', failsAfter)), { length: failsAfter + 1 })
        ).rejects.toMatchObject({
          code: 'ERR_BLOB_LENGTH_MISMATCH'
        })
        expect(await halves()).toEqual([1, 1])
      }
      await pool.db.query(
        `ALTER TABLE alkblobs_pglo.lo_entries ADD CONSTRAINT no_more CHECK (length < 20000) NOT VALID`
      )
      for (const length of [30_000, 2.5 * MIB]) {
        await expect(store.put(chunksOf(contentOf('refused', length)))).rejects.toMatchObject({
          code: 'ERR_BLOB_ENGINE'
        })
        expect(await halves()).toEqual([1, 1])
      }
      await pool.db.query('ALTER TABLE alkblobs_pglo.lo_entries DROP CONSTRAINT no_more')
      expect(await store.delete(key)).toBe(true)
      expect(await halves()).toEqual([0, 0])
      await released(store.put(chunksOf(bytes)))
      expect(await halves()).toEqual([1, 1])
      for (const deleted of [0, 1]) expect(await store.sweep()).toMatchObject({ deleted })
      expect(await halves()).toEqual([0, 0])
      expect(await pool.oracle.counts()).toMatchObject({ stages: 0, trash: 0, bodies: 0 })
    }
  )

  it('are nothing that vacuumlo would remove, which an object without a column that names it is', async () => {
    const pool = await testPool('postgres + pglo')
    const store = await pool.open()
    await released(store.put(contentOf('kept', 20_000)))
    const { query } = pool.db
    const orphans = async () => {
      // As it is done in vacuumlo.c: all objects, less those in any column of these types.
      const columns = await query<{
        name: string
      }>(`SELECT format('SELECT %I FROM %I.%I', a.attname, s.nspname, c.relname) AS name
        FROM pg_class c, pg_attribute a, pg_namespace s, pg_type t
        WHERE a.attnum > 0 AND NOT a.attisdropped AND a.attrelid = c.oid AND a.atttypid = t.oid AND c.relnamespace = s.oid
          AND t.typname IN ('oid', 'lo') AND c.relkind IN ('r', 'm') AND s.nspname !~ '^pg_'`)
      const named = columns.map(({ name }) => name).join(' UNION ALL ')
      return await query<{ oid: number }>(`SELECT oid FROM pg_largeobject_metadata EXCEPT (${named})`)
    }
    expect(await orphans()).toEqual([])
    const [made] = await query<{ oid: number }>("SELECT lo_from_bytea(0, 'of nobody') AS oid")
    expect(await orphans()).toEqual([made])
    await query('SELECT lo_unlink($1::oid)', [Number(made?.oid)])
  })
})

onServer('O16: bodies that are gone, or cannot be dropped', () => {
  it('hold up no other, in this sweep or the next', async () => {
    const pool = await testPool('postgres + pglo')
    const store = await pool.open()
    store.protect(nothing)
    const keys = await Promise.all(
      Array.from({ length: 60 }, (_, n) => released(store.put(contentOf(`body ${n}`, 11_000))))
    )
    expect(await store.sweep()).toMatchObject({ candidatesStaged: 60 })
    await pool.db.query(
      'SELECT lo_unlink(loid) FROM (SELECT loid FROM alkblobs_pglo.lo_entries ORDER BY stage LIMIT 15) AS e'
    )
    const [stuck] = await pool.db.query<{ key: Buffer }>(
      'SELECT key FROM alkblobs_pglo.lo_entries ORDER BY stage OFFSET 30 LIMIT 1'
    )
    await pool.db.query(
      `CREATE FUNCTION public.stuck() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE EXCEPTION 'stuck'; END $$`
    )
    await pool.db.query(`CREATE TRIGGER stuck BEFORE DELETE ON alkblobs_pglo.lo_entries FOR EACH ROW
      WHEN (OLD.key = '\\x${stuck?.key.toString('hex')}') EXECUTE FUNCTION public.stuck()`)
    const swept = await store.sweep()
    expect(swept).toMatchObject({ deleted: 60, failed: [{ key: formatKey('blake3', stuck?.key as Buffer) }] })
    expect(await pool.oracle.counts()).toMatchObject({ bodies: 1, trash: 1 })
    expect(keys.map(key => digestHexOf(key as never))).toContain(stuck?.key.toString('hex'))
    await pool.db.query('DROP TRIGGER stuck ON alkblobs_pglo.lo_entries')
    await pool.expire()
    expect(await store.maintain()).toMatchObject({ dropped: 1, failed: [] })
    expect(await pool.oracle.counts()).toMatchObject({ bodies: 0, trash: 0 })
  })
})

onServer('O34: ten slow readers over two connections', () => {
  it('get exact bytes or stop, and keep no connection and no transaction', async () => {
    const pool = await testPool('postgres + pglo')
    const store = await pool.open({ poolMax: 2 })
    const contents = Array.from({ length: 10 }, (_, n) => contentOf(`read ${n}`, 1.5 * MIB))
    const keys: string[] = []
    for (const bytes of contents) keys.push(await released(store.put(bytes)))
    const read = async (key: string, n: number) => {
      const chunks: Uint8Array[] = []
      for await (const chunk of (await store.get(key)) ?? []) {
        chunks.push(chunk)
        await new Promise(resolve => setTimeout(resolve, 20))
        if (n % 2 === 1) return true
      }
      return Buffer.compare(Buffer.concat(chunks), contents[n] as Buffer) === 0
    }
    expect(await Promise.all(keys.map(read))).toEqual(keys.map(() => true))
    await expect.poll(() => sessionsWhere(pool, 'xact_start IS NOT NULL')).toBe(0)
    // Those that have ended are listed for a moment longer.
    await expect.poll(() => sessionsWhere(pool)).toBeLessThanOrEqual(4)
    expect(await killSessions(pool)).toBeGreaterThan(0)
    expect(await holds(store, keys[0] as string, contents[0] as Buffer)).toBe(true)
  })
})

onServer('O37: a statement that fails', () => {
  it.each(KINDS.filter(kind => kind !== 'sqlite + pglo'))(
    'fails its put alone, and hides no cause, over %s',
    async kind => {
      const pool = await testPool(kind)
      const store = await pool.open()
      await released(store.put('the pool is there'))
      await pool.oracle.refuse?.(12_345)
      const puts = await Promise.allSettled([
        ...Array.from({ length: 5 }, (_, n) => released(store.put(`beside it ${n}`))),
        released(store.put(chunksOf(contentOf('refused', 12_345))))
      ])
      expect(puts.map(({ status }) => status)).toEqual([...Array(5).fill('fulfilled'), 'rejected'])
      expect((puts[5] as PromiseRejectedResult).reason).toMatchObject({
        code: 'ERR_BLOB_ENGINE',
        kind: 'full',
        cause: { code: '53100' }
      })
      await pool.oracle.refuse?.(undefined)
      await released(store.put(chunksOf(contentOf('refused', 12_345))))
      expect(await pool.oracle.counts()).toMatchObject({ stages: 0, trash: 0 })
      expect(await count(pool, 'entries')).toBe(7)
    }
  )
})
