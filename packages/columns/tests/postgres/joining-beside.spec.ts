/** What others do while a transaction of the application's with puts in it is open, and in which order things come. */
import { noServer } from '@alkblobs/testkit'
import { describe, expect, it } from 'vitest'
import { Bench, LONG, SHORT, transaction } from './joined-stores.js'

const OTHER = Buffer.alloc(2_000, 9)
const conflict = { code: 'ERR_BLOB_ENGINE', kind: 'conflict' }

describe.skipIf(noServer() !== undefined)('while a transaction with puts is open', () => {
  it('nobody waits for it: not to sweep, delete, maintain, renew, read, list, count or verify', async () => {
    const bench = await Bench.of('postgres + local', { pinTtlMs: 900 })
    const { sql } = bench
    const found = await bench.unprotected(OTHER)
    const held = await bench.store.put(Buffer.from('held'))
    const other = await bench.another({ pinTtlMs: 900 })
    other.protect({ name: 'none', live: () => [] })
    expect(await other.sweep()).toMatchObject({ candidatesStaged: 1 })
    const open = await transaction(sql)
    const joined = await bench.store.joining(open.tx)
    const made = [await joined.put(SHORT), await joined.put(LONG)].map(({ key }) => key)
    expect(await joined.put(OTHER)).toMatchObject({ key: found, created: false })
    const started = performance.now()
    expect(await other.sweep()).toMatchObject({ deleted: 0, cancelledByArbitration: 0, candidatesStaged: 0 })
    expect(await other.maintain()).not.toHaveProperty('aborted')
    expect(await other.usage()).toMatchObject({ entries: 2 })
    expect(await other.verify()).toMatchObject({ entries: 2, clean: true })
    expect([...(await other.hasMany([...made, found])).values()]).toEqual([false, false, true])
    const keys: string[] = []
    for await (const { key } of other.list()) keys.push(key)
    expect(keys.sort()).toEqual([found, held.key].sort())
    expect(await other.why(found)).toBeDefined()
    for (const key of made) expect(await other.delete(key)).toBe(false)
    await expect(other.delete(found)).rejects.toMatchObject({ code: 'ERR_BLOB_GC_REFUSED', reason: 'pinned' })
    const [again, pinned] = [await other.put(Buffer.from('others go on')), await other.pin(held.key)]
    expect(performance.now() - started).toBeLessThan(4_000)
    // Renewals go on, also of what has been staged by the store itself.
    await new Promise(resolve => setTimeout(resolve, 1_000))
    expect([held.pin?.held, again.pin?.held, pinned?.held]).toEqual([true, true, true])
    await open.commit()
    expect([...(await other.hasMany([...made, found])).values()]).toEqual([true, true, true])
    expect((await other.verify()).clean).toBe(true)
  })

  it('a put of the same content waits no longer than for any lock: a conflict, or a success after the commit', async () => {
    const bench = await Bench.of('kv-only')
    const other = await bench.another({ lockTimeoutMs: 600 })
    const open = await transaction(bench.sql)
    await (await bench.store.joining(open.tx)).put(SHORT)
    const started = performance.now()
    const beside = other.put(OTHER)
    await expect(other.put(SHORT)).rejects.toMatchObject(conflict)
    expect(performance.now() - started).toBeLessThan(3_000)
    expect(await beside).toMatchObject({ created: true })
    const patient = bench.store.put(SHORT)
    await bench.until("wait_event_type = 'Lock' AND application_name = 'alkblobs'")
    await open.commit()
    expect(await patient).toMatchObject({ created: false })
  })

  it('a second transaction with the same content waits for the first, and makes the entry if that rolls back', async () => {
    for (const end of ['commit', 'rollback'] as const) {
      const bench = await Bench.of('postgres + local')
      const [one, two] = [await transaction(bench.sql), await transaction(bench.sql)]
      expect(await (await bench.store.joining(one.tx)).put(LONG)).toMatchObject({ created: true })
      const second = (await bench.store.joining(two.tx)).put(LONG)
      await bench.until("wait_event_type = 'Lock' AND application_name = 'app'")
      await one[end]()
      expect(await second).toMatchObject({ created: end === 'rollback' })
      await two.commit()
      expect(await bench.entries()).toHaveLength(1)
      expect((await bench.store.verify()).clean).toBe(true)
    }
  })
})

describe.skipIf(noServer() !== undefined)('beside sweeps that never stop', () => {
  it('transactions that put and refer, and some that give up, lose nothing and leave nothing', async () => {
    const bench = await Bench.of('postgres + local')
    const sweepers = [await bench.another(), await bench.another()]
    // One asks the application for its rows, the other one has the server look at them.
    sweepers[0]?.protect({ name: 'files', live: () => bench.files() })
    await sweepers[1]?.protect({ table: 'public.files', column: 'blob' })
    let isOver = false
    let deleted = 0
    const sweeping = sweepers.map(async sweeper => {
      while (!isOver) {
        const report = await sweeper.sweep()
        expect([undefined, 'SweeperLock']).toContain(report.aborted)
        deleted += report.deleted
        await new Promise(setImmediate)
      }
    })
    const one = async (n: number) => {
      // Few contents, so that most are found there, or have just been swept.
      const content = Buffer.alloc(n % 2 === 0 ? 500 : 5_000, n % 7)
      await bench.sql.begin(async tx => {
        const { key } = await (await bench.store.joining(tx)).put(content)
        await tx`INSERT INTO files VALUES (${key}) ON CONFLICT DO NOTHING`
        if (n % 3 === 0) throw new Error('given up')
        if (n % 5 === 0) await tx`DELETE FROM files WHERE blob = ${key}`
      })
    }
    const outcomes: PromiseSettledResult<void>[] = []
    for (let n = 0; n < 120; n += 3) {
      outcomes.push(...(await Promise.allSettled([one(n), one(n + 1), one(n + 2)])))
      const files = await bench.files()
      expect(await bench.entries()).toEqual(expect.arrayContaining(files))
    }
    isOver = true
    await Promise.all(sweeping)
    const failed = outcomes.flatMap(each => (each.status === 'rejected' ? [each.reason.message] : []))
    expect(new Set(failed)).toEqual(new Set(['given up']))
    expect(deleted).toBeGreaterThan(0)
    await bench.sweep()
    expect(await bench.entries()).toEqual(await bench.files())
    expect(await bench.store.verify()).toMatchObject({ corrupt: [], dangling: [] })
  })
})

describe.skipIf(noServer() !== undefined)('what comes between the look of a put and its lock', () => {
  /** Holds a put of the application's after it has looked and before it makes the entry, until the step is done; then it commits. */
  async function between(step: (bench: Bench) => Promise<void>, content: Uint8Array) {
    const bench = await Bench.of('postgres + local')
    const open = await transaction(bench.sql)
    const joined = await bench.store.joining(open.tx)
    const blocker = await transaction(bench.sql)
    await blocker.tx`SELECT pg_advisory_xact_lock(77)`
    await bench.query(`CREATE FUNCTION public.wait() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
      IF current_setting('application_name') = 'app' THEN PERFORM pg_advisory_xact_lock_shared(77); END IF; RETURN NEW; END $$`)
    await bench.query('CREATE TRIGGER wait BEFORE INSERT ON $.entries FOR EACH ROW EXECUTE FUNCTION public.wait()')
    const put = joined.put(content)
    await bench.until("wait_event = 'advisory' AND application_name = 'app'")
    await step(bench)
    await blocker.commit()
    const receipt = await put
    await open.tx`INSERT INTO files VALUES (${receipt.key})`
    await open.commit()
    return { bench, receipt }
  }

  it.each([SHORT, LONG])(
    'an entry that another one makes and a sweep stages is found, and not swept',
    async content => {
      const { bench, receipt } = await between(async bench => {
        await bench.unprotected(content)
        const sweeper = await bench.another()
        sweeper.protect({ name: 'none', live: () => [] })
        expect(await sweeper.sweep()).toMatchObject({ candidatesStaged: 1 })
      }, content)
      expect(receipt.created).toBe(false)
      // The stage of long content was locked by the transaction before there was an entry: nobody waits for it, and it expires.
      expect((await bench.left()).stages).toBe(content === LONG ? 1 : 0)
      // The row was cancelled with the commit; what is live afterwards, the application's table says.
      expect(await bench.query('SELECT cancelled FROM $.gc_window')).toEqual([{ cancelled: true }])
      expect(await bench.sweep()).toBe(0)
      expect(await bench.entries()).toEqual([receipt.key])
    }
  )

  it('an entry that is staged, and then deleted, leaves no candidate behind for the one that is made', async () => {
    const { bench, receipt } = await between(async bench => {
      const key = await bench.unprotected(SHORT)
      const sweeper = await bench.another()
      const nothing = sweeper.protect({ name: 'none', live: () => [] })
      expect(await sweeper.sweep()).toMatchObject({ candidatesStaged: 1 })
      nothing.remove()
      expect(await sweeper.delete(key)).toBe(true)
      expect(await bench.query('SELECT cancelled FROM $.gc_window')).toEqual([{ cancelled: false }])
    }, SHORT)
    expect(receipt.created).toBe(true)
    expect(await bench.query('SELECT cancelled FROM $.gc_window')).toEqual([{ cancelled: true }])
    // Even a sweep that knows of no file stages it anew at most.
    const sweeper = await bench.another()
    sweeper.protect({ name: 'none', live: () => [] })
    expect(await sweeper.sweep()).toMatchObject({ deleted: 0, cancelledByArbitration: 1 })
    expect(await bench.entries()).toEqual([receipt.key])
  })
})

describe.skipIf(noServer() !== undefined)('a put that finds an entry which somebody is about to remove', () => {
  it.each(['commit', 'rollback'] as const)('waits for that, and makes it or finds it (%s)', async end => {
    for (const content of [SHORT, LONG]) {
      const bench = await Bench.of('postgres + local')
      const key = await bench.unprotected(content)
      const remover = await transaction(bench.sql)
      await remover.tx.unsafe('SELECT 1 FROM alkblobs.entries FOR UPDATE')
      await remover.tx.unsafe('DELETE FROM alkblobs.gc_pins')
      await remover.tx.unsafe('DELETE FROM alkblobs.entries')
      const open = await transaction(bench.sql)
      async function* stream() {
        yield content
      }
      const put = (await bench.store.joining(open.tx)).put(stream())
      await bench.until("wait_event_type = 'Lock' AND application_name = 'app'")
      await remover[end]()
      expect(await put).toMatchObject({ key, created: end === 'commit' })
      await open.commit()
      expect(await bench.entries()).toEqual([key])
      expect(await bench.left()).toMatchObject({ stages: 0 })
      expect(await bench.store.get(key).then(blob => blob?.bytes())).toEqual(new Uint8Array(content))
    }
  })

  it('is told of a candidate that is staged while it waits for the lock', async () => {
    const bench = await Bench.of('kv-only')
    const key = await bench.unprotected(SHORT)
    // As a sweep does it: the entry locked, then the row written.
    const sweeper = await transaction(bench.sql)
    await sweeper.tx.unsafe('SELECT 1 FROM alkblobs.entries FOR UPDATE')
    const open = await transaction(bench.sql)
    const put = (await bench.store.joining(open.tx)).put(SHORT)
    await bench.until("wait_event_type = 'Lock' AND application_name = 'app'")
    await sweeper.tx.unsafe(`INSERT INTO alkblobs.gc_window (key, mark, staged_at, delay_ms)
      SELECT key, '', clock_timestamp(), 0 FROM alkblobs.entries`)
    await sweeper.commit()
    expect(await put).toMatchObject({ key, created: false })
    await open.commit()
    expect(await bench.query('SELECT cancelled FROM $.gc_window')).toEqual([{ cancelled: true }])
  })

  it('whose delete is marked before the lock refuses it, and one that is marked after it waits for nobody', async () => {
    const bench = await Bench.of('kv-only')
    const key = await bench.unprotected(SHORT)
    const other = await bench.another()
    const open = await transaction(bench.sql)
    const joined = await bench.store.joining(open.tx)
    let asked = 0
    const source = other.protect({
      name: 'a put comes',
      isLive: async () => {
        expect(await joined.put(SHORT)).toMatchObject({ key, created: false })
        asked += 1
        return []
      }
    })
    const started = performance.now()
    await expect(other.delete(key)).rejects.toMatchObject({ code: 'ERR_BLOB_GC_REFUSED', reason: 'pinned' })
    expect(performance.now() - started).toBeLessThan(3_000)
    source.remove()
    expect(asked).toBe(1)
    await open.commit()
    expect(await bench.entries()).toEqual([key])
    expect(await other.delete(key)).toBe(true)
  })
})
