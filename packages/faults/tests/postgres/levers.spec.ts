// The levers of a PostgreSQL server, each with the proof that it moved something. Without a server they are skipped with the reason.
import { freshDatabase, noServer, sharedServer, type TestDatabase } from '@alkblobs/testkit'
import postgres from 'postgres'
import { describe, expect, it, onTestFinished } from 'vitest'
import {
  type Barrier,
  BarrierExpired,
  ForgottenFault,
  Ledger,
  NotMinted,
  type PgAdmin,
  PgFaultArmer,
  pgAdmin,
  rowBarrier,
  sessionsOf,
  statementsBarrier,
  terminateBackend,
  UnfiredFault
} from '../../src/index.js'

const reason = noServer()
const onServer = describe.skipIf(reason !== undefined)

interface Place {
  readonly database: TestDatabase
  readonly admin: PgAdmin
}

/** A database with a table in a schema, and the administrator of its test. */
async function place(): Promise<Place> {
  const database = await freshDatabase()
  onTestFinished(() => database.drop())
  const admin = await pgAdmin(database.url)
  onTestFinished(() => admin.close())
  await admin.query('CREATE SCHEMA pool')
  await admin.query('CREATE TABLE pool.entries (v int); CREATE TABLE pool.gc_pins (v int PRIMARY KEY)')
  return { database, admin }
}

/** A session of somebody who is tested. */
function session({ database }: Place): postgres.Sql {
  const sql = postgres(database.url, { max: 1, onnotice: () => undefined, connection: { application_name: 'tested' } })
  onTestFinished(() => sql.end({ timeout: 0 }))
  return sql
}

const codeOf = (work: Promise<unknown>) =>
  work.then(
    () => 'no error',
    (error: { code?: string }) => error.code
  )

async function passed(barrier: Barrier): Promise<void> {
  onTestFinished(() => barrier.open())
}

onServer(`a barrier${reason === undefined ? '' : ` (${reason})`}`, () => {
  it('holds whoever touches the tables, reading or writing, and lets go of them', async () => {
    const at = await place()
    const barrier = await statementsBarrier(at.admin, [{ schema: 'pool', table: 'entries' }])
    await passed(barrier)
    const sql = session(at)
    const reading = sql`SELECT count(*)::int AS n FROM pool.entries`.then(rows => rows[0]?.n)
    const pid = await barrier.reached()
    expect(await sessionsOf(at.admin)).toEqual([pid])
    await barrier.open()
    expect(await reading).toBe(0)
  })

  it('is not reached by who waits for something of the kind in another database', async () => {
    const [at, elsewhere] = [await place(), await place()]
    const barrier = await statementsBarrier(at.admin, [{ schema: 'pool', table: 'entries' }])
    await passed(barrier)
    const other = await statementsBarrier(elsewhere.admin, [{ schema: 'pool', table: 'entries' }])
    await passed(other)
    void codeOf(session(elsewhere)`SELECT FROM pool.entries`)
    await other.reached()
    await expect(barrier.reached(100)).rejects.toThrow(BarrierExpired)
  })

  it.each(['row', 'commit'] as const)('holds a session at its %s, and ending it there undoes its work', async where => {
    const at = await place()
    const barrier = await rowBarrier(at.admin, { schema: 'pool', table: 'entries', event: 'INSERT', at: where })
    await passed(barrier)
    const sql = session(at)
    const inserting = codeOf(sql`INSERT INTO pool.entries VALUES (1)`)
    const pid = await barrier.reached()
    await terminateBackend(at.admin, pid)
    // The driver tells of whatever it hears first: the server's word, or the end of the connection.
    expect(await inserting).toMatch(/^(57P01|CONNECTION_CLOSED)$/)
    await barrier.open()
    expect(await at.admin.query('SELECT FROM pool.entries')).toHaveLength(0)
    await session(at)`INSERT INTO pool.entries VALUES (2)`
  })

  it.each([
    ['no session', async (): Promise<void> => undefined],
    ['sessions elsewhere', async (at: Place): Promise<void> => void (await session(at)`SELECT 1`)],
    [
      'waiting for another lock',
      async (at: Place) => {
        await at.admin.query('SELECT pg_advisory_lock(4711)')
        const waiting = codeOf(session(at)`SELECT pg_advisory_lock(4711)`)
        const ours = 'database = (SELECT oid FROM pg_database WHERE datname = current_database())'
        while ((await at.admin.query(`SELECT FROM pg_locks WHERE NOT granted AND ${ours}`)).length === 0);
        onTestFinished(() => void waiting)
      }
    ]
  ] as const)('that expires says that it saw %s', async (cause, bringAbout) => {
    const at = await place()
    const barrier = await rowBarrier(at.admin, { schema: 'pool', table: 'entries', event: 'INSERT', at: 'row' })
    await passed(barrier)
    await bringAbout(at)
    const error = await barrier.reached(100).catch(error => error)
    expect(error).toBeInstanceOf(BarrierExpired)
    expect(error.causeSeen).toBe(cause)
  })
})

onServer('ending a session', () => {
  it('never ends one of the administrator, and knows what was not there', async () => {
    const { admin } = await place()
    for (const pid of admin.pids) await expect(terminateBackend(admin, pid)).rejects.toThrow('administrator')
    await expect(terminateBackend(admin, 1)).rejects.toThrow()
  })
})

onServer('the armer', () => {
  it('fails the nth statement of a class, and counts through the rollback that it causes', async () => {
    const at = await place()
    const armed = await new PgFaultArmer(at.admin, new Ledger()).arm({ schema: 'pool', statement: 'entries', nth: 3 })
    const sql = session(at)
    const codes: unknown[] = []
    for (let n = 0; n < 5; n++) codes.push(await codeOf(sql`INSERT INTO pool.entries VALUES (${n})`))
    expect(codes).toEqual(['no error', 'no error', '53100', 'no error', 'no error'])
    expect(await armed.finish()).toEqual({ invocations: 5, injected: 1, passed: 4 })
    expect(await at.admin.query('SELECT FROM pool.entries')).toHaveLength(4)
    expect(await at.admin.query("SELECT FROM pg_class WHERE relname LIKE 'fault%'")).toHaveLength(0)
  })

  it('fails it for good, with the state given, upserts too, until it is disarmed', async () => {
    const at = await place()
    await at.admin.query('INSERT INTO pool.gc_pins VALUES (1)')
    const armed = await new PgFaultArmer(at.admin, new Ledger()).arm({
      schema: 'pool',
      statement: 'gc_pins',
      nth: 2,
      lasting: 'for good',
      sqlState: '40001'
    })
    const upsert = (): Promise<unknown> =>
      codeOf(session(at)`INSERT INTO pool.gc_pins VALUES (2) ON CONFLICT (v) DO UPDATE SET v = 2`)
    expect([await upsert(), await upsert(), await upsert()]).toEqual(['no error', '40001', '40001'])
    await armed.disarm()
    await armed.disarm()
    expect(await upsert()).toBe('no error')
    const { injected } = await armed.finish()
    expect(injected).toBeGreaterThanOrEqual(2)
  })

  it('that armed what never came fails when it is finished', async () => {
    const at = await place()
    const armed = await new PgFaultArmer(at.admin, new Ledger()).arm({ schema: 'pool', statement: 'entries' })
    await expect(armed.finish()).rejects.toThrow(UnfiredFault)
  })

  it('that is forgotten fails the test', async () => {
    const at = await place()
    const ledger = new Ledger()
    await new PgFaultArmer(at.admin, ledger).arm({ schema: 'pool', statement: 'entries' })
    expect(() => ledger.assertFinished()).toThrow(ForgottenFault)
    expect(ledger.records).toEqual([{ what: '53100 at entries 1, once (forgotten)', fired: false, cells: [] }])
  })

  it('touches no database that tests did not make', async () => {
    await expect(pgAdmin('postgres://somebody@127.0.0.1:1/production')).rejects.toThrow(NotMinted)
    const { url } = await sharedServer()
    await expect(pgAdmin(url)).rejects.toThrow(NotMinted)
    const admin = await pgAdmin(url, { schema: 'alkblobs_test_schema' })
    onTestFinished(() => admin.close())
    const armer = new PgFaultArmer(admin, new Ledger())
    await expect(armer.arm({ schema: 'public', statement: 'entries' })).rejects.toThrow(NotMinted)
    await expect(statementsBarrier(admin, [{ schema: 'public', table: 'entries' }])).rejects.toThrow(NotMinted)
  })
})
