import { inspect } from 'node:util'
import { freshRole } from '@alkblobs/testkit'
import { describe, expect, test } from 'vitest'
import { classifyPostgres, Sessions } from '../src/index.js'
import {
  ASLEEP,
  addressOf,
  call,
  codeOf,
  database,
  describeWithServer,
  expectWorking,
  sessions,
  until
} from './fixture.js'
import { pooler } from './pooler.js'
import { CERTIFICATE, tlsProxy } from './tls-proxy.js'

describeWithServer('a proxy that pools', () => {
  test('by transaction is refused, by whoever asks', async () => {
    const db = await database()
    const over = sessions({ ...addressOf(db), port: await pooler(db, 'transaction') })
    for (let attempt = 0; attempt < 3; attempt++) {
      expect(await codeOf(over.use(call(), session => session.rows('SELECT 1')))).toBe('pooled')
      expect(await codeOf(over.transaction(call(), session => session.rows('SELECT 1')))).toBe('pooled')
      expect(await codeOf(over.hold(call()))).toBe('pooled')
    }
  })

  test('by session is welcome', async () => {
    const db = await database()
    const over = sessions({ ...addressOf(db), port: await pooler(db, 'session') })
    await Promise.all(Array.from({ length: 20 }, () => expectWorking(over)))
    const held = await over.hold(call())
    expect(await held.rows('SELECT pg_backend_pid()')).toEqual([[held.pid]])
    await held.release()
  })
})

describeWithServer('encryption', () => {
  test('is used where it is offered, and demanded where it is said to be', async () => {
    const db = await database()
    const port = await tlsProxy(db)
    for (const ssl of ['prefer', 'require', { ca: CERTIFICATE }] as const) {
      await expectWorking(sessions({ ...addressOf(db), host: 'localhost', port, ssl }))
    }
    for (const ssl of ['verify-full', true] as const) {
      const over = sessions({ ...addressOf(db), host: 'localhost', port, ssl })
      expect(await codeOf(over.use(call(), session => session.rows('SELECT 1')))).toBe('denied')
    }
  })

  test('that the server does not offer is done without only if it was merely preferred', async () => {
    const db = await database()
    await expectWorking(sessions({ ...addressOf(db), ssl: 'prefer' }))
    const over = sessions({ ...addressOf(db), ssl: 'require' })
    expect(await codeOf(over.use(call(), session => session.rows('SELECT 1')))).toBe('denied')
  })

  test('is not begun with somebody who says more than yes', async () => {
    const db = await database()
    const port = await tlsProxy(db, Buffer.from('S and what was injected'))
    const over = sessions({ ...addressOf(db), host: 'localhost', port, ssl: 'require' })
    expect(await codeOf(over.use(call(), session => session.rows('SELECT 1')))).toBe('denied')
  })
})

describeWithServer('an error', () => {
  test('holds neither the password nor what a statement was given', async () => {
    const db = await database()
    const secret = 'hidden-9f2b'
    const role = await freshRole(db)
    const over = sessions(addressOf(db))
    const wrong = sessions({ ...addressOf(db), user: role.name, password: secret })
    const tried = [
      over.use(call(), session => session.rows('SELECT $1::int', [secret])),
      over.use(call(), session => session.rows('SELECT $1::bytea, pg_sleep(30)', [Buffer.from(secret)])),
      over.use(call(), session => session.rows(`SELECT '${secret}'::int`)),
      over.use(call(), async session => {
        await session.run('CREATE TABLE public.u (v text PRIMARY KEY)')
        await session.run('INSERT INTO public.u VALUES ($1), ($1)', [secret])
      }),
      wrong.use(call(), session => session.rows('SELECT 1'))
    ]
    const settled = Promise.allSettled(tried)
    await until(db, ASLEEP)
    await db.query(`SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE datname = current_database() AND ${ASLEEP}`)
    const errors = (await settled).map(each => (each.status === 'rejected' ? each.reason : undefined))
    expect(errors.map(classifyPostgres)).toEqual(['unknown', 'transient', 'unknown', 'unknown', 'denied'])
    for (const error of errors) {
      expect(inspect(error, { showHidden: true, depth: 10 })).not.toContain(secret)
      expect(inspect(error, { showHidden: true, depth: 10 })).not.toContain(Buffer.from(secret).toString('hex'))
    }
    await role.drop()
  })

  test('of a role that may not connect, a database that is not there and a role that may not read is a denial', async () => {
    const db = await database()
    const role = await freshRole(db)
    const asked = (config: object) =>
      codeOf(sessions({ ...addressOf(db), ...config }).use(call(), session => session.rows('SELECT * FROM pg_authid')))
    expect(await asked({ database: 'alkblobs_nowhere' })).toBe('denied')
    expect(await asked({ password: 'wrong' })).toBe('denied')
    expect(await asked({ user: role.name, password: role.password })).toBe('denied')
    await role.drop()
  })
})

describe('a config', () => {
  const make = (config: unknown) => () => new Sessions(config as never, { connectTimeoutMs: 1, lockTimeoutMs: 1 })

  test('is checked when it is given, and what is wrong is named without its value', () => {
    const secret = 'hidden-9f2b'
    const wrong: unknown[] = [
      null,
      { url: `postgres://u:${secret}@` },
      { url: `http://u:${secret}@h/d` },
      { url: `postgres://u:${secret}@h/d?sslrootcert=${secret}` },
      { url: `postgres://u:%${secret}@h/d` },
      { port: 0 },
      { port: '5432' },
      { poolMax: 1 },
      { password: `${secret}\0` },
      { ssl: secret },
      { user: '' }
    ]
    for (const config of wrong) {
      try {
        make(config)()
        expect.fail(`accepted ${JSON.stringify(config)}`)
      } catch (error) {
        expect(error).toMatchObject({ code: 'ERR_BLOB_INVALID_ARGUMENT' })
        expect(inspect(error, { showHidden: true, depth: 10 }).split(' at ')[0]).not.toContain(secret)
      }
    }
    expect(make({ url: 'postgresql://u@[::1]:5433/d?sslmode=verify-full' })).not.toThrow()
    expect(make({})).not.toThrow()
  })
})
