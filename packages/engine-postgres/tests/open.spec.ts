import { once } from 'node:events'
import { createServer } from 'node:net'
import { inspect } from 'node:util'
import { EngineFault, type OpenContext } from '@alkblobs/core/engine'
import { expect, onTestFinished, test } from 'vitest'
import { postgres } from '../src/index.js'
import { call, context, describeServer, eventually, inline, keyOf, open, openPool, place, record } from './fixture.js'

const faultOf = async (config: Parameters<typeof postgres>[0], timeouts: Partial<OpenContext> = {}) => {
  const error = await postgres(config)
    .open({ ...context, ...timeouts })
    .catch((error: unknown) => error)
  expect(error).toBeInstanceOf(EngineFault)
  return error as EngineFault
}

describeServer('opening', () => {
  test('looks at the server and makes nothing', async () => {
    const at = await place()
    const engine = await open({ url: at.url, schema: at.schema })
    expect([engine.name, engine.catalog.form, engine.durability]).toEqual([
      'postgres',
      'durable',
      expect.stringMatching(/^(disk|os)$/)
    ])
    expect(await engine.catalog.meta.read(call())).toBeUndefined()
    expect(await at.query('SELECT 1 FROM pg_namespace WHERE nspname = $1', [at.schema])).toEqual([])
  })

  test('names its failures, without secrets: refused, no such database, wrong password, not PostgreSQL, silent', async () => {
    const at = await place()
    const silent = createServer(() => undefined).listen(0, '127.0.0.1')
    const babbler = createServer(socket => socket.end('HTTP/1.1 400 Bad Request\r\n\r\n')).listen(0, '127.0.0.1')
    onTestFinished(() => void [silent, babbler].map(server => server.close()))
    await Promise.all([silent, babbler].map(server => server.listening || once(server, 'listening')))
    const portOf = (server: typeof silent) => (server.address() as { port: number }).port
    const { host, port, user, password } = at
    const given = { host, port, user, password: password || 'hunter2', database: at.database }
    const faults = await Promise.all([
      faultOf({ ...given, port: 1 }),
      faultOf({ ...given, database: 'absent_database' }),
      faultOf({ ...given, host: '127.0.0.1', port: portOf(silent) }, { connectTimeoutMs: 1_000 }),
      faultOf({ ...given, host: '127.0.0.1', port: portOf(babbler) }, { connectTimeoutMs: 1_000 })
    ])
    expect(faults.slice(0, 3).map(({ code }) => code)).toEqual(['transient', 'denied', 'transient'])
    for (const fault of faults) expect(inspect(fault, { depth: 9, showHidden: true })).not.toContain(given.password)
  })

  test('refuses a schema of something else', async () => {
    const at = await place()
    await at.query(`CREATE SCHEMA ${at.schema}; CREATE TABLE ${at.schema}.t (a int)`)
    expect((await faultOf({ url: at.url, schema: at.schema })).code).toBe('foreign')
  })
})

describeServer('an engine', () => {
  test('leaves no session behind when it is closed, leases included', async () => {
    const at = await place()
    const url = `${at.url}?application_name=${at.schema}`
    const engine = await postgres({ url, schema: at.schema }).open(context)
    const catalog = engine.catalog as NonNullable<typeof engine.catalog>
    await catalog.meta.compareAndSet(undefined, record, call())
    await Promise.all([1, 2, 3, 4].map(n => catalog.publish([inline(n, Buffer.of(n))], call())))
    expect(await catalog.lease(call())).toBeDefined()
    const sessions = 'SELECT 1 FROM pg_stat_activity WHERE application_name = $1'
    expect((await at.query(sessions, [at.schema])).length).toBeGreaterThan(0)
    await engine.close()
    await eventually('no session', async () => (await at.query(sessions, [at.schema])).length === 0)
  })

  test('keeps an inline body as long as it says it can', async () => {
    const { catalog } = await openPool(await place())
    const body = Buffer.alloc(catalog.inlineLengthMax, 'alkblobs')
    expect((await catalog.publish([inline(1, body)], call(30_000)))[0]?.outcome).toBe('created')
    const read = await catalog.read(keyOf(1), call(30_000))
    expect(read?.body && Buffer.compare(read.body, body)).toBe(0)
  })

  test('names any error, and never throws over one', async () => {
    const { classify } = await open({ url: (await place()).url })
    for (const error of [undefined, null, 7, 'text', {}, new Error('plain')]) expect(classify(error)).toBe('unknown')
    expect(classify(new EngineFault('gone', 'it is gone'))).toBe('gone')
  })
})
