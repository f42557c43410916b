/**
 * What becomes of a store whose sessions die, whose way to the server is cut or goes silent, and whose server stops, crashes and
 * comes back, while it is idle, in the middle of a put, of a read and of a sweep. Whatever is under way succeeds or fails with a
 * kind, within its deadline; the same store goes on; one sweep later nothing of it is left.
 */
import type { Store } from '@alkblobs/core'
import { freshRole, startServer, type TestServer } from '@alkblobs/testkit'
import { expect, it } from 'vitest'
import { Child, report } from '../processes/children.js'
import {
  atEnd,
  chunksOf,
  contentOf,
  endOf,
  holds,
  KINDS,
  type Kind,
  killSessions,
  MIB,
  type OpenOptions,
  onServer,
  type TestPool,
  testPool
} from './pools.js'
import { Wire } from './wire.js'

/** Where waiting for the end of patience is what is tested; long enough for a busy machine to answer in. */
const SHORT_MS = 1_000
/** Where nothing should have to wait for it. */
const LONG_MS = 10_000
/** An operation makes several calls, and tidies up after one that failed; each may wait for its deadline once. */
const WAITS_MAX = 6

const bounded = (ms: number): OpenOptions => ({ operationTimeoutMs: ms, connectTimeoutMs: ms, lockTimeoutMs: ms })

const KEPT = contentOf('kept', 2.5 * MIB)
/** Its first part fills two windows, so that a body in a database has an open transaction by then. */
const UPLOAD = contentOf('upload', 3 * MIB)
const FIRST_PART = 2.5 * MIB

/** A store with one blob that is referenced and one that a sweep has staged. */
interface Scene {
  readonly pool: TestPool
  readonly store: Store
  readonly kept: string
  readonly dead: string
  /** What the next sweep waits for, between its sources' question and their answer. */
  readonly gate: { reached: () => void; passed: Promise<void> }
}

async function scene(pool: TestPool, options: OpenOptions = {}): Promise<Scene> {
  const { kept, dead } = await prepare(pool)
  const store = await pool.open({ ...bounded(LONG_MS), ...options })
  const gate: Scene['gate'] = { reached: () => undefined, passed: Promise.resolve() }
  store.protect({
    name: 'documents',
    async live() {
      gate.reached()
      await gate.passed
      return [kept]
    }
  })
  return { pool, store, kept, dead, gate }
}

/** By a store that has time: the patience of the one under test is for what is done to it. */
async function prepare(pool: TestPool): Promise<{ readonly kept: string; readonly dead: string }> {
  const store = await pool.open(bounded(LONG_MS))
  const kept = await store.put(KEPT)
  const dead = await store.put(contentOf('dead', 100_000))
  await Promise.all([kept.release(), dead.release()])
  store.protect({ name: 'documents', live: () => [kept.key] })
  const { aborted, candidatesStaged } = await store.sweep()
  expect({ aborted, candidatesStaged }).toEqual({ aborted: undefined, candidatesStaged: 1 })
  await store.close()
  return { kept: kept.key, dead: dead.key }
}

/** Begins everything that lasts, up to its middle; the answer goes on with it and resolves when all of it has ended. */
async function begin({ pool, store, kept, gate }: Scene): Promise<() => Promise<Record<string, Promise<void>>>> {
  const upload = store.writer()
  for await (const chunk of chunksOf(UPLOAD.subarray(0, FIRST_PART))) await upload.write(chunk)
  const read = (await store.get(kept))?.stream().getReader() as ReadableStreamDefaultReader<Uint8Array>
  const first = await read.read()
  const sweeping = standstill(gate)
  const sweep = store.sweep()
  sweep.catch(() => undefined)
  await sweeping.reached
  return async () => {
    sweeping.goOn()
    return {
      put: finishUpload(upload),
      read: finishRead(read, first.value as Uint8Array),
      sweep: sweep.then(({ aborted, deleted }) => {
        // A lease that lay on a session is lost with it, and nothing is removed then; one in a file has noticed nothing.
        if (pool.kind === 'sqlite + pglo') expect(aborted).toBeUndefined()
        else expect({ aborted, deleted }).toEqual({ aborted: 'LeaseLost', deleted: 0 })
      })
    }
  }
}

function standstill(gate: Scene['gate']): { readonly reached: Promise<void>; goOn(): void } {
  let goOn: () => void = () => undefined
  gate.passed = new Promise(resolve => {
    goOn = resolve
  })
  const reached = new Promise<void>(resolve => {
    gate.reached = resolve
  })
  return { reached, goOn: () => goOn() }
}

async function finishUpload(upload: ReturnType<Store['writer']>): Promise<void> {
  await using writer = upload
  for await (const chunk of chunksOf(UPLOAD.subarray(FIRST_PART))) await writer.write(chunk)
  const receipt = await writer.commit()
  await receipt.release()
}

/** A stream that ends has all of it; one that cannot go on fails. */
async function finishRead(read: ReadableStreamDefaultReader<Uint8Array>, first: Uint8Array): Promise<void> {
  const chunks = [first]
  for (let part = await read.read(); !part.done; part = await read.read()) chunks.push(part.value)
  expect(Buffer.compare(Buffer.concat(chunks), KEPT)).toBe(0)
}

/** How each ended, none of them in a way that nobody can act on, or too late. */
async function expectGoodEnds(work: Record<string, Promise<void>>): Promise<Record<string, string>> {
  const ends = await Promise.all(Object.entries(work).map(async ([name, each]) => [name, await endOf(each)] as const))
  for (const [name, { how, ms }] of ends) {
    expect(how, name).toMatch(/^(done|transient|conflict|exhausted|outcome-unknown)$/)
    expect(ms, name).toBeLessThan(WAITS_MAX * SHORT_MS)
  }
  return Object.fromEntries(ends.map(([name, { how }]) => [name, how]))
}

/** The same store does all its work again, at once. */
async function expectWorking({ store, kept }: Scene, round: string): Promise<void> {
  expect(await holds(store, kept, KEPT)).toBe(true)
  for (const length of [100, 1.5 * MIB]) {
    const bytes = contentOf(round, length)
    const receipt = await store.put(chunksOf(bytes))
    expect(await holds(store, receipt.key, bytes)).toBe(true)
    await receipt.release()
    expect(await store.delete(receipt.key)).toBe(true)
  }
}

/** Lets what is left expire; one sweep later there is nothing but whole entries. */
async function expectNothingLeft({ pool, store, kept, dead }: Scene): Promise<void> {
  await pool.expire()
  // A lease whose session has died is free as soon as the server knows.
  await expect.poll(async () => (await store.sweep()).aborted, { timeout: 5_000 }).toBeUndefined()
  const counts = await pool.oracle.counts()
  expect(counts).toMatchObject({ stages: 0, trash: 0, pins: 0 })
  const usage = await store.usage()
  expect(counts.bodies).toBe(usage.perTier.large.entries)
  expect(await store.verify()).toMatchObject({ clean: true, entries: usage.entries })
  // What the first sweep staged, which is all but one, goes with the second.
  expect((await store.sweep()).aborted).toBeUndefined()
  expect(await store.usage()).toMatchObject({ entries: 1 })
  expect(await Promise.all([store.has(kept), store.has(dead)])).toEqual([true, false])
}

interface Fault {
  strike(): Promise<unknown>
  mend(): Promise<unknown>
}

/** Strikes a store that is idle, then one that is in the middle of everything. */
async function suffer(at: Scene, { strike, mend }: Fault, name: string) {
  // With a session that lies idle, as those of a store that has just worked do.
  await Promise.all([holds(at.store, at.kept, KEPT), at.store.usage()])
  await strike()
  const small = contentOf(`${name} small`, 100)
  const whileIdle = await expectGoodEnds({
    put: at.store.put(small).then(receipt => receipt.release()),
    get: holds(at.store, at.kept, KEPT).then(isSame => expect(isSame).toBe(true))
  })
  await mend()
  await expectWorking(at, `${name}, idle`)
  const goOn = await begin(at)
  await strike()
  const busy = await expectGoodEnds(await goOn())
  await mend()
  await expectWorking(at, `${name}, busy`)
  await expectNothingLeft(at)
  report(`${at.pool.kind}, ${name}: ${JSON.stringify({ whileIdle, busy })}`)
  return { whileIdle, busy }
}

onServer('a store', () => {
  it.each(KINDS)('over %s goes on when its sessions are killed', async kind => {
    const at = await scene(await testPool(kind))
    const strike = async () => expect(await killSessions(at.pool)).toBeGreaterThan(0)
    const { whileIdle, busy } = await suffer(at, { strike, mend: async () => undefined }, 'killed')
    // A transaction that found its session dead had not begun, and takes another; a read fails if it comes before the news.
    expect(whileIdle.put).toBe('done')
    // What is lost is a body that lay in an open transaction.
    if (kind.endsWith('pglo')) expect(busy.put).toBe('transient')
    if (kind === 'postgres + local') expect(busy.read).toBe('done')
  })

  it.each(KINDS)('over %s goes on when its connections are reset and refused for a while', async kind => {
    const pool = await testPool(kind)
    const wire = await Wire.to(pool.db)
    const at = await scene(pool, { port: wire.port })
    const before = wire.connects
    await suffer(at, { strike: async () => wire.refuse(), mend: async () => wire.heal() }, 'refused')
    // Whoever is refused comes again with the next call, not in between.
    expect(wire.connects - before).toBeLessThan(200)
  })

  it('goes on when its connections go silent, whatever it is made of', { timeout: 60_000 }, async () => {
    const silent = async (kind: Kind) => {
      const pool = await testPool(kind)
      const wire = await Wire.to(pool.db)
      const at = await scene(pool, { port: wire.port, ...bounded(SHORT_MS) })
      const before = wire.dropped
      await suffer(at, { strike: async () => wire.silence(), mend: async () => wire.heal() }, 'silent')
      expect(wire.dropped).toBeGreaterThan(before)
    }
    // All of it waits and next to nothing works.
    await Promise.all(KINDS.map(silent))
  })
})

/** A server that this test alone uses, up again when the test is over. */
async function ownServer(): Promise<TestServer> {
  const server = await startServer()
  atEnd(() => server.release())
  return server
}

onServer('a server that', () => {
  it('stops, crashes and comes back is waited for by nobody and found by everybody', { timeout: 60_000 }, async () => {
    const server = await ownServer()
    const scenes: Scene[] = []
    for (const kind of KINDS) scenes.push(await scene(await testPool(kind, server)))
    const strikes = {
      stopped: () => server.stop(),
      crashed: () => server.kill('SIGQUIT')
    }
    for (const [name, strike] of Object.entries(strikes)) {
      const goOn = await Promise.all(scenes.map(begin))
      await strike()
      const putSmall = async ({ store }: Scene) => (await store.put(contentOf(`${name} small`, 100))).release()
      const refused = await Promise.all(scenes.map(each => endOf(putSmall(each))))
      const opening = await endOf((scenes[2] as Scene).pool.open())
      const ends = await Promise.all(goOn.map(async each => expectGoodEnds(await each())))
      report(`server ${name}: ${JSON.stringify({ ends, refused: refused.map(({ how }) => how) })}`)
      // Small blobs of the last kind are in a file of this machine.
      expect(refused.map(({ how }) => how)).toEqual(['transient', 'transient', 'transient', 'done'])
      expect(opening.how).toBe('transient')
      for (const { ms } of [...refused, opening]) expect(ms).toBeLessThan(LONG_MS)
      await server.start()
      await Promise.all(scenes.map(each => expectWorking(each, name)))
    }
    await Promise.all(scenes.map(expectNothingLeft))
  })
})

/** A store whose role is no superuser, since a superuser is refused nothing. */
async function limited(pool: TestPool, limit: string): Promise<Store> {
  const role = await freshRole(pool.db)
  atEnd(() => role.drop())
  const { schema, db } = pool
  await db.query(`GRANT CREATE, TEMPORARY ON DATABASE ${db.database} TO ${role.name}`)
  for (const each of [schema, 'alkblobs_pglo']) await db.query(`ALTER SCHEMA ${each} OWNER TO ${role.name}`)
  const tables = await db.query<{ name: string }>(
    `SELECT format('%I.%I', schemaname, tablename) AS name FROM pg_tables WHERE schemaname IN ($1, 'alkblobs_pglo')`,
    [schema]
  )
  for (const { name } of tables) await db.query(`ALTER TABLE ${name} OWNER TO ${role.name}`)
  const objects = await db.query<{ oid: number }>('SELECT oid FROM pg_largeobject_metadata')
  for (const { oid } of objects) await db.query(`ALTER LARGE OBJECT ${oid} OWNER TO ${role.name}`)
  await db.query(`ALTER ROLE ${role.name} ${limit}`)
  const url = new URL(db.url)
  url.username = role.name
  url.password = role.password
  return pool.open({ url: url.href })
}

onServer('a server that', () => {
  it('has no more connections says so, and those that are there do the work', async () => {
    const pool = await testPool('postgres + pglo')
    const { store: before, kept } = await scene(pool)
    await before.close()
    const store = await limited(pool, 'CONNECTION LIMIT 2')
    const ends = await Promise.all(Array.from({ length: 12 }, (_, n) => endOf(store.put(contentOf(`${n}`, 50_000)))))
    const hows = new Set(ends.map(({ how }) => how))
    report(`two connections: ${[...hows]}`)
    expect([...hows].every(how => how === 'done' || how === 'exhausted')).toBe(true)
    expect(hows).toContain('exhausted')
    expect(await holds(store, kept, KEPT)).toBe(true)
    expect((await endOf(store.put('one at a time'))).how).toBe('done')
  })

  it('takes no writes is read from, and writes are denied and leave nothing', async () => {
    const pool = await testPool('postgres + pglo')
    const { store: before, kept } = await scene(pool)
    await before.close()
    const store = await limited(pool, 'SET default_transaction_read_only = on')
    store.protect({ name: 'documents', live: () => [kept] })
    expect(await holds(store, kept, KEPT)).toBe(true)
    expect(await store.verify()).toMatchObject({ clean: true, entries: 2 })
    const writes = [
      () => store.put('small'),
      () => store.put(chunksOf(UPLOAD)),
      () => store.pin(kept),
      () => store.delete(kept),
      () => store.sweep()
    ]
    for (const write of writes) {
      await expect(write()).rejects.toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'denied', transient: false })
    }
    expect(await holds(store, kept, KEPT)).toBe(true)
    expect(await pool.oracle.counts()).toMatchObject({ stages: 0, trash: 0, pins: 0 })
  })
})

interface Life {
  readonly ends: Readonly<Record<string, number>>
  readonly odd: readonly string[]
  readonly stderr: string
}

onServer('a process', () => {
  it('lives through kills, cuts, silence and crashes by the dozen, and ends by itself', {
    timeout: 60_000
  }, async () => {
    const server = await ownServer()
    const pool = await testPool('postgres + pglo', server)
    const wire = await Wire.to(pool.db)
    const url = pool.db.url.replace(`:${pool.db.port}/`, `:${wire.port}/`)
    const given = { url, schema: pool.schema, timeoutMs: SHORT_MS }
    const child = new Child('../../postgres/workers/hard-life.mjs', { given, limitMs: 55_000 })
    await child.next()
    /** Resolves when every kind of work has succeeded once more. */
    const progress = async () => {
      child.tell({ ask: 'progress' })
      await child.next()
    }
    await progress()
    for (let round = 0; round < 2; round++) {
      for (let kill = 0; kill < 5; kill++) {
        await new Promise(resolve => setTimeout(resolve, 30))
        await killSessions(pool)
        await new Promise(resolve => setTimeout(resolve, 30))
        wire.reset()
      }
      await progress()
      if (round === 0) {
        wire.silence()
        await new Promise(resolve => setTimeout(resolve, SHORT_MS))
        wire.heal()
      } else {
        await server.kill('SIGKILL')
        await server.start()
      }
      await progress()
    }
    child.tell({ ask: 'end' })
    const { ends, odd, stderr } = await child.next<Life>()
    await child.finish()
    report(`hard life: ${JSON.stringify(ends)}`)
    expect({ odd, stderr }).toEqual({ odd: [], stderr: '' })
    expect(ends.done).toBeGreaterThan(50)
    expect(ends.transient).toBeGreaterThan(10)
    const store = await pool.open()
    store.protect({ name: 'nothing', live: () => [] })
    await pool.expire()
    expect(await store.sweep()).not.toHaveProperty('aborted')
    expect(await pool.oracle.counts()).toMatchObject({ stages: 0, trash: 0, pins: 0 })
    expect(await store.verify()).toMatchObject({ clean: true })
  })
})
