// What a user is told: a commit whose answer is lost, silence, and the three ways in which a database cannot be reached are told apart.
import { randomUUID } from 'node:crypto'
import { openStore, type Store } from '@alkblobs/core'
import type { Catalog } from '@alkblobs/core/engine'
import { postgres } from '@alkblobs/engine-postgres'
import {
  type FaultyProxy,
  type FoundProxy,
  findProxy,
  type PgAdmin,
  pgAdmin,
  rowBarrier,
  sessionsOf,
  statementsBarrier,
  terminateBackend
} from '@alkblobs/faults'
import { freshDatabase, noServer, type TestDatabase } from '@alkblobs/testkit'
import { describe, expect, it, onTestFinished } from 'vitest'
import { SCHEMA } from './subjects.js'

const TIMEOUT_MS = 1_500

interface Ground {
  readonly database: TestDatabase
  readonly admin: PgAdmin
  readonly proxy: FaultyProxy
  readonly found: FoundProxy
  open(poolMax?: number): Promise<Store>
}

async function ground(): Promise<Ground> {
  const database = await freshDatabase()
  onTestFinished(() => database.drop())
  const admin = await pgAdmin(database.url)
  onTestFinished(() => admin.close())
  const found = await findProxy(database)
  const proxy = await found.createProxy(`outcomes-${randomUUID()}`)
  onTestFinished(async () => {
    await proxy.delete()
    await found.release()
  })
  const url = new URL(database.url)
  url.host = `${proxy.host}:${proxy.port}`
  return {
    database,
    admin,
    proxy,
    found,
    async open(poolMax = 4) {
      const store = await openStore({
        kv: postgres({ url: url.href, schema: SCHEMA, poolMax }),
        windowDelayMs: 0,
        operationTimeoutMs: TIMEOUT_MS,
        connectTimeoutMs: TIMEOUT_MS
      })
      onTestFinished(() => store.close().catch(() => undefined))
      return store
    }
  }
}

const outcomeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'well',
    (error: { kind?: string; code?: string }) => `${error.code} ${error.kind}`
  )
const entriesIn = async ({ database }: Ground) => (await database.query(`SELECT FROM ${SCHEMA}.entries`)).length
const reason = noServer()
const onServer = describe.skipIf(reason !== undefined)

onServer(`a commit${reason === undefined ? '' : ` (${reason})`}`, () => {
  // Whether the store finds out that it was there, or says that it does not know: it never says that nothing was kept, and trying again converges.
  it('that took effect and whose answer was lost is never told as a failure without effect', async () => {
    const at = await ground()
    const store = await at.open()
    await store.put('the first makes the pool')
    const barrier = await rowBarrier(at.admin, { schema: SCHEMA, table: 'entries', event: 'INSERT', at: 'commit' })
    onTestFinished(() => barrier.open())
    const putting = outcomeOf(store.put('the second'))
    await barrier.reached()
    await at.proxy.add({ name: 'no answer', type: 'limit_data', attributes: { bytes: 0 } })
    await barrier.open()
    for (const end = performance.now() + 5_000; (await entriesIn(at)) < 2 && performance.now() < end; );
    expect(await entriesIn(at)).toBe(2)
    await at.proxy.remove('no answer')
    expect(await putting).toMatch(/^(well|ERR_BLOB_ENGINE (outcome-unknown|transient))$/)
    const again = await store.put('the second')
    expect(again.created).toBe(false)
    expect(await entriesIn(at)).toBe(2)
  })

  it.each(['row', 'commit'] as const)(
    'that never came, as its session ended in its %s, leaves no entry, row or pin, unless the put was tried again and succeeded',
    async where => {
      const at = await ground()
      const store = await at.open()
      await store.put('the first makes the pool')
      const barrier = await rowBarrier(at.admin, { schema: SCHEMA, table: 'entries', event: 'INSERT', at: where })
      onTestFinished(() => barrier.open())
      const putting = outcomeOf(store.put('the second'))
      await terminateBackend(at.admin, await barrier.reached())
      await barrier.open()
      const outcome = await putting
      expect(outcome).toMatch(/^(well|ERR_BLOB_ENGINE (outcome-unknown|transient))$/)
      expect(await entriesIn(at)).toBe(outcome === 'well' ? 2 : 1)
      expect((await store.put('the second')).created).toBe(outcome !== 'well')
    }
  )
})

onServer('a sweep', () => {
  it('whose session is ended before its removal has committed has removed nothing and removes nothing more; another takes its place', async () => {
    const at = await ground()
    const [store, other] = [await at.open(), await at.open()]
    for (const each of [store, other]) each.protect({ name: 'nobody', live: () => [] })
    for (let n = 0; n < 3; n++) await (await store.put(`unreferenced ${n}`)).release()
    expect(await store.sweep()).toMatchObject({ candidatesStaged: 3 })
    const barrier = await rowBarrier(at.admin, { schema: SCHEMA, table: 'entries', event: 'DELETE', at: 'row' })
    onTestFinished(() => barrier.open())
    const sweeping = store.sweep()
    const pid = await barrier.reached()
    // The right to sweep is that session's, so nobody else has it while it lives.
    expect(await other.sweep()).toMatchObject({ aborted: 'SweeperLock' })
    await terminateBackend(at.admin, pid)
    await barrier.open()
    expect(await sweeping).toMatchObject({ aborted: 'LeaseLost', deleted: 0 })
    expect(await entriesIn(at)).toBe(3)
    expect(await other.sweep()).toMatchObject({ deleted: 3 })
    expect(await entriesIn(at)).toBe(0)
  })
})

onServer('a server that is silent', () => {
  it('is waited for until the deadline and no longer, and the same store goes on afterwards, on other sessions', async () => {
    const at = await ground()
    const store = await at.open()
    const { key } = await store.put('here')
    const before = await sessionsOf(at.admin)
    for (const stream of ['upstream', 'downstream'] as const) {
      await at.proxy.add({ name: stream, type: 'timeout', stream, attributes: { timeout: 0 } })
    }
    const start = performance.now()
    const calls = [store.put('there'), store.get(key).then(blob => blob?.text()), store.sweep()].map(outcomeOf)
    for (const outcome of await Promise.all(calls))
      expect(outcome).toMatch(/^(well|ERR_BLOB_ENGINE (outcome-unknown|transient))$/)
    // Each waits for an engine call once or twice, and cleans up once.
    expect(performance.now() - start).toBeLessThan(6 * TIMEOUT_MS)
    for (const stream of ['upstream', 'downstream']) await at.proxy.remove(stream)
    expect(await (await store.get(key))?.text()).toBe('here')
    await store.put('there')
    const after = await sessionsOf(at.admin)
    expect(after.some(pid => !before.includes(pid))).toBe(true)
  })
})

onServer('a database that cannot be had', () => {
  it('because it is cut off in a statement, and because it refuses, says so, and is had again afterwards', async () => {
    const at = await ground()
    const store = await at.open()
    const { key } = await store.put('here')
    const barrier = await rowBarrier(at.admin, { schema: SCHEMA, table: 'entries', event: 'INSERT', at: 'row' })
    onTestFinished(() => barrier.open())
    // Cut off in the middle of a statement.
    const cut = outcomeOf(store.put('in the middle'))
    await barrier.reached()
    await at.proxy.disable()
    expect(await cut).toMatch(/^ERR_BLOB_ENGINE (transient|outcome-unknown)$/)
    // Refused at the door.
    const refused = await store.put('refused').catch(error => error)
    expect(refused).toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'transient', transient: true })
    await barrier.open()
    await at.proxy.enable()
    expect(await (await store.get(key))?.text()).toBe('here')
  })

  it('because every session is in use is exhausted, not away', async () => {
    const at = await ground()
    const { key } = await (await at.open()).put('here')
    const context = { algorithm: 'blake3', lockTimeoutMs: TIMEOUT_MS, connectTimeoutMs: TIMEOUT_MS } as const
    const engine = await postgres({ url: at.database.url, schema: SCHEMA, poolMax: 2 }).open(context)
    onTestFinished(() => engine.close())
    const barrier = await statementsBarrier(at.admin, [{ schema: SCHEMA, table: 'entries' }])
    onTestFinished(() => barrier.open())
    const catalog = engine.catalog as Catalog
    const within = (ms: number) => ({ deadlineMs: performance.now() + ms })
    // Looks take a session each; reads share one.
    const patient = [catalog.find([key], within(5_000)), catalog.find([key], within(5_000))]
    await barrier.reached()
    const impatient = [catalog.read(key, within(200)), catalog.read(key, within(200)), catalog.find([key], within(200))]
    for (const end of await Promise.allSettled(impatient)) {
      expect(end.status === 'rejected' && engine.classify(end.reason)).toBe('exhausted')
    }
    await barrier.open()
    for (const answer of patient) expect((await answer)[0]?.key).toBe(key)
  })
})
