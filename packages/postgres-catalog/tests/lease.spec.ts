import { once } from 'node:events'
import { type AddressInfo, connect, createServer } from 'node:net'
import type { TestSchema } from '@alkblobs/testkit'
import { expect, onTestFinished, test } from 'vitest'
import {
  call,
  describeServer,
  failure,
  inline,
  keyOf,
  leaseOf,
  openPool,
  openSchema,
  place,
  sessionWhere,
  sooner,
  terminate
} from './fixture.js'

const HOLDERS = `
  SELECT l.pid FROM pg_locks l JOIN pg_stat_activity a USING (pid)
  WHERE l.locktype = 'advisory' AND l.granted AND a.datname = current_database()
    AND (l.classid::bigint << 32 | l.objid::bigint) = $1::bigint`

/** The sessions that hold the lease of a schema, as the server's own list of locks says. */
async function holdersOf({ at }: { at: { schema: string; query: Awaited<ReturnType<typeof place>>['query'] } }) {
  const { advisoryKey } = await import('../src/schema.js')
  return (await at.query<{ pid: number }>(HOLDERS, [advisoryKey('lease', at.schema)])).map(({ pid }) => pid)
}

/** A way to the server on which what the test does not let pass gets lost, and whose far end stays open until the test is over. */
async function wayOf({ url, host, port }: TestSchema, passes: (chunk: Buffer) => boolean): Promise<string> {
  const server = createServer({ noDelay: true }, client => {
    const far = connect({ host, port, noDelay: true })
    onTestFinished(() => void [client, far].map(socket => socket.destroy()))
    for (const socket of [client, far]) socket.on('error', () => undefined)
    client.on('data', chunk => passes(chunk) && far.write(chunk))
    far.on('data', chunk => client.write(chunk))
  }).listen(0, '127.0.0.1')
  onTestFinished(() => void server.close())
  await once(server, 'listening')
  return url.replace(`:${port}/`, `:${(server.address() as AddressInfo).port}/`)
}

/** The message with which a session says goodbye. */
const GOODBYE = Buffer.from('X\0\0\0\x04', 'latin1')

describeServer('the lease', () => {
  test('is held once among all openers, and free after release', async () => {
    const one = await openPool()
    const two = await openPool({ at: one.at })
    const lease = await one.catalog.lease(call())
    expect(await one.catalog.lease(call())).toBeUndefined()
    expect(await two.catalog.lease(call())).toBeUndefined()
    expect(await holdersOf(one)).toHaveLength(1)
    await lease?.release()
    await lease?.release()
    const next = await two.catalog.lease(call())
    expect(next).toBeDefined()
    expect(lease?.lost.aborted).toBe(false)
  })

  test('asked for by many at once is given to exactly one', async () => {
    const pools = [await openPool()]
    while (pools.length < 4) pools.push(await openPool({ at: pools[0]?.at as never }))
    const leases = await Promise.all(pools.flatMap(({ catalog }) => [catalog.lease(call()), catalog.lease(call())]))
    expect(leases.filter(lease => lease !== undefined)).toHaveLength(1)
  })

  test('leaves no lock behind, neither when it is released nor when its holder closes', async () => {
    const one = await openPool()
    const lease = await leaseOf(one.catalog)
    await lease.release()
    expect(await holdersOf(one)).toEqual([])
    await leaseOf(one.catalog)
    await one.close()
    expect(await holdersOf(one)).toEqual([])
    const two = await openPool({ at: one.at })
    expect(await two.catalog.lease(call())).toBeDefined()
  })

  test('is free when its release resolves, though the server has not heard of the end of its session', async () => {
    const { at } = await openPool()
    const url = await wayOf(at, chunk => !chunk.includes(GOODBYE))
    const { catalog, close } = await openSchema({ ...at, url })
    const lease = await leaseOf(catalog)
    expect(await holdersOf({ at })).toHaveLength(1)
    await lease.release()
    expect(await holdersOf({ at })).toEqual([])
    await close()
  })

  test('of one schema does not keep anybody from that of another', async () => {
    const [one, two] = [await openPool(), await openPool()]
    expect(await one.catalog.lease(call())).toBeDefined()
    expect(await two.catalog.lease(call())).toBeDefined()
  })

  test('of a schema that is not there makes nothing', async () => {
    const at = await place()
    const { catalog } = await openSchema(at)
    const lease = await leaseOf(catalog)
    expect(await catalog.maintain(lease, call())).toEqual({ pinsReaped: 0, stagesTrashed: 0 })
    expect(await at.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [at.schema])).toEqual([])
  })

  test('does not stand in the way of puts and reads', async () => {
    const one = await openPool()
    const two = await openPool({ at: one.at })
    await one.catalog.lease(call())
    // The lease is held throughout, so what waited for it would never come back.
    await two.catalog.publish([inline(1)], call())
    expect(await one.catalog.read(keyOf(1), call())).toBeDefined()
  })

  test('is lost when its session is killed: it says so, nothing is removed, and it is free at once', async () => {
    const one = await openPool()
    const { catalog, sql } = one
    await catalog.publish([inline(1), inline(2)], call())
    const lease = await leaseOf(catalog)
    await catalog.stageCandidates(lease, [keyOf(1)], call())
    await terminate(one.at, (await holdersOf(one))[0] as number)
    const candidate = { kind: 'candidate', key: keyOf(1), live: false } as const
    for (const doubtful of [
      () => catalog.remove([candidate], 0, lease, call()),
      () => catalog.stageCandidates(lease, [keyOf(2)], call()),
      () => catalog.candidates(lease, undefined, 9, call()),
      () => catalog.due(lease, undefined, 9, call()),
      () => catalog.maintain(lease, call())
    ]) {
      expect(['transient', 'conflict']).toContain(await failure(doubtful()))
      expect(lease.lost.aborted).toBe(true)
    }
    expect(await sql('SELECT count(*)::int AS n FROM $.gc_window')).toEqual([{ n: 1 }])
    const next = await leaseOf(catalog)
    await lease.release()
    expect(next.lost.aborted).toBe(false)
    expect((await catalog.remove([candidate], 0, next, call()))[0]?.outcome).toBe('deleted')
  })

  test('that is lost in the middle of a removal removes nothing', async () => {
    const one = await openPool()
    const { catalog, sql } = one
    await catalog.publish([inline(1)], call())
    const lease = await leaseOf(catalog)
    await catalog.stageCandidates(lease, [keyOf(1)], call())
    // The trigger holds the removal in its last statement until the session is gone.
    await sql(`CREATE FUNCTION $.wait() RETURNS trigger LANGUAGE plpgsql AS
      'BEGIN PERFORM pg_sleep(600); RETURN old; END'`)
    await sql('CREATE TRIGGER wait BEFORE DELETE ON $.entries FOR EACH ROW EXECUTE FUNCTION $.wait()')
    const removal = failure(catalog.remove([{ kind: 'candidate', key: keyOf(1), live: false }], 0, lease, call()))
    await terminate(one.at, await sessionWhere(one.at, "wait_event = 'PgSleep'"))
    expect(await removal).toBe('transient')
    expect(lease.lost.aborted).toBe(true)
    expect(await catalog.find([keyOf(1)], call())).not.toContain(undefined)
  })

  test('that nobody answers about costs a call its deadline, and the store its goodbyes', async () => {
    const { at } = await openPool()
    let isSilent = false
    const url = await wayOf(at, chunk => {
      isSilent ||= chunk.includes('pg_try_advisory_lock')
      return !isSilent
    })
    const { catalog, close } = await openSchema({ ...at, url })
    // A second for the goodbye of the session that was to have it.
    expect(await sooner(4_000, failure(catalog.lease(call(2_000))))).toBe('transient')
    await sooner(4_000, close())
  })

  test('of another opener is not accepted', async () => {
    const one = await openPool()
    const two = await openPool({ at: one.at })
    await one.catalog.publish([inline(1)], call())
    const lease = await leaseOf(one.catalog)
    await expect(two.catalog.stageCandidates(lease, [keyOf(1)], call())).rejects.toThrow('lease lost')
  })
})
