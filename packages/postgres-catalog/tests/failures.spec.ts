import { Commits } from '@alkblobs/testkit'
import { expect, onTestFinished, test } from 'vitest'
import {
  call,
  describeServer,
  failure,
  HOUR,
  inline,
  keyOf,
  leaseOf,
  openPool,
  pinned,
  pinOf,
  place,
  record,
  sessionWhere,
  sleep,
  sooner,
  staged,
  stageOf,
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

  test('in its commit fails nothing: it is known not to have happened, and runs again', async () => {
    const { at, catalog, sql } = await openPool()
    // A deferred trigger runs inside COMMIT; it waits once.
    await sql('CREATE SEQUENCE $.times')
    await sql(`CREATE FUNCTION $.wait() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN IF nextval(''$.times'') = 1 THEN PERFORM pg_sleep(600); END IF; RETURN NULL; END'`)
    await sql(`CREATE CONSTRAINT TRIGGER wait AFTER INSERT ON $.entries DEFERRABLE INITIALLY DEFERRED
      FOR EACH ROW EXECUTE FUNCTION $.wait()`)
    const put = catalog.publish([inline(1, undefined, pinned())], call())
    await terminate(at, await sessionWhere(at, `query LIKE 'COMMIT%' AND ${ASLEEP}`))
    expect((await put)[0]?.outcome).toBe('created')
    expect(await sql('SELECT count(*)::int AS n FROM $.gc_pins')).toEqual([{ n: 1 }])
  })
})

describeServer('a commit that is lost', () => {
  /** A pool over a way on which commits get lost. */
  async function overCommits() {
    const at = await place()
    const commits = await Commits.to(at)
    onTestFinished(() => commits.close())
    const pool = await openPool({ at, url: commits.url(at.url) })
    const rows = async (table: string) =>
      (await pool.sql<{ n: number }>(`SELECT count(*)::int AS n FROM $.${table}`))[0]?.n
    return { ...pool, commits, rows }
  }

  test('with its answer is a publication that says what it did: entry, pin and no stage', async () => {
    const { catalog, commits, rows } = await overCommits()
    await catalog.stage([{ id: stageOf(1), ttlMs: HOUR }], call())
    commits.loseNext('answer')
    expect(await catalog.publish([staged(1, 1, pinned())], call())).toEqual([
      { outcome: 'created', entry: expect.objectContaining({ key: keyOf(1) }) }
    ])
    commits.loseNext('answer')
    expect((await catalog.publish([inline(2, undefined, pinned())], call()))[0]?.outcome).toBe('created')
    expect(commits.lost).toBe(2)
    expect([await rows('entries'), await rows('gc_pins'), await rows('stages'), await rows('trash')]).toEqual([
      2, 2, 0, 0
    ])
  })

  test('on its way is a publication that runs again, once', async () => {
    const { catalog, commits, rows } = await overCommits()
    commits.loseNext('request')
    const outcomes = await catalog.publish([inline(1, undefined, pinned()), inline(2)], call())
    expect(outcomes.map(({ outcome }) => outcome)).toEqual(['created', 'created'])
    expect(commits.lost).toBe(1)
    expect([await rows('entries'), await rows('gc_pins')]).toEqual([2, 1])
  })

  test('is unknown where nobody can be asked; the same put again finds what there is, and makes what there is not', async () => {
    const { catalog, commits, rows } = await overCommits()
    for (const [n, what] of [[1, 'answer'] as const, [2, 'request'] as const]) {
      await catalog.stage([{ id: stageOf(n), ttlMs: HOUR }], call())
      commits.loseNextAndAll(what)
      expect(await failure(catalog.publish([staged(n, n, pinned(HOUR, pinOf(1)))], call(500)))).toBe('outcome-unknown')
      commits.mend()
      const again = await catalog.publish([inline(n, undefined, pinned(HOUR, pinOf(2)))], call())
      expect(again[0]?.outcome).toBe(what === 'answer' ? 'existed' : 'created')
    }
    // A stage that is not known to have been published stays until it expires.
    expect([await rows('entries'), await rows('gc_pins'), await rows('stages'), await rows('trash')]).toEqual([
      2, 2, 1, 0
    ])
  })

  test('of a lone publication that never arrived is a failure that can be tried again, and no row', async () => {
    const { catalog, commits, rows } = await overCommits()
    // One that heals goes alone.
    const healing = { ...inline(1), healing: { tier: 'kv', length: 3 } } as const
    commits.loseNext('request')
    expect(await failure(catalog.publish([healing], call()))).toBe('transient')
    expect([commits.lost, await rows('entries')]).toEqual([1, 0])
    expect((await catalog.publish([healing], call()))[0]?.outcome).toBe('created')
  })

  test('of every other transaction has its result, and of none a second one', async () => {
    const { catalog, commits, rows, sql } = await overCommits()
    const lost = async <T>(work: () => Promise<T>) => {
      const before = commits.lost
      commits.loseNext('answer')
      const result = await work()
      expect(commits.lost).toBe(before + 1)
      return result
    }
    await catalog.publish([inline(1), inline(2, undefined, pinned(1))], call())
    const marked = await lost(() => catalog.mark(keyOf(1), call()))
    if (typeof marked !== 'object') throw new Error(marked)
    expect(await rows('gc_window')).toBe(1)
    const removed = await lost(() =>
      catalog.remove([{ kind: 'marked', key: keyOf(1), mark: marked.mark, live: false }], 0, undefined, call())
    )
    expect(removed.map(({ outcome }) => outcome)).toEqual(['deleted'])
    while ((await sql('SELECT 1 FROM $.gc_pins WHERE expires_at > clock_timestamp()')).length > 0) await sleep(5)
    const revived = {
      pins: [{ key: keyOf(2), pin: pinOf() }],
      pinTtlMs: HOUR,
      stages: [],
      stageTtlMs: HOUR,
      revive: true
    }
    expect(await lost(() => catalog.renew(revived, call()))).toEqual({ pins: [], stages: [] })
    expect(await sql('SELECT 1 FROM $.gc_pins WHERE expires_at > clock_timestamp()')).toHaveLength(1)
    const next = { ...record, windowDelayMs: 5 }
    expect(await lost(() => catalog.meta.compareAndSet(record, next, call()))).toBe(true)
    expect(await catalog.meta.read(call())).toEqual(next)
    await lost(() => catalog.discard([{ stage: stageOf(7) }], call()))
    expect(await rows('trash')).toBe(1)
    await lost(() => catalog.dropped([{ what: stageOf(7) }], call()))
    expect(await rows('trash')).toBe(0)
  })

  test('of a sweep costs the lease, not the answer', async () => {
    const { catalog, commits, rows } = await overCommits()
    await catalog.publish([inline(1)], call())
    const lease = await leaseOf(catalog)
    commits.loseNext('answer')
    expect(await catalog.stageCandidates(lease, [keyOf(1)], call())).toEqual([keyOf(1)])
    expect(lease.lost.aborted).toBe(true)
    expect(await failure(catalog.stageCandidates(lease, [keyOf(1)], call()))).toBe('conflict')
    expect(await rows('gc_window')).toBe(1)
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
