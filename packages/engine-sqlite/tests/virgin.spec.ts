import { chmodSync, existsSync, mkdirSync, readdirSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Owner, PinId } from '@alkblobs/core/engine'
import Database from 'better-sqlite3'
import { describe, expect, test } from 'vitest'
import { sqlite } from '../src/index.js'
import { call, folder, inline, keyOf, locatorOf, openFile, openPool, pinOf, record, sql, stageOf } from './fixture.js'

const open = (file: string) => sqlite({ file }).open({ algorithm: 'blake3', lockTimeoutMs: 500, connectTimeoutMs: 500 })
const codeOf = async (promise: Promise<unknown>) =>
  promise.then(
    () => 'resolved',
    error => error.code
  )

describe('a file that does not exist', () => {
  test('is read as an empty pool, and nothing is made: no file, no folder', async () => {
    const parent = folder()
    const { catalog } = await openFile(join(parent, 'deep', 'pool.db'))
    const pin: PinId = { key: keyOf(1), pin: pinOf(1, 'me' as Owner) }
    const found = [{ stage: stageOf(1), sealed: { locator: locatorOf(1), key: keyOf(1), length: 1, whole: true } }]
    expect(await catalog.meta.read(call())).toBeUndefined()
    expect(await catalog.find([keyOf(1), keyOf(2)], call())).toEqual([undefined, undefined])
    expect(await catalog.read(keyOf(1), call())).toBeUndefined()
    expect(await catalog.list(undefined, 10, call())).toEqual([])
    expect(await catalog.explain(keyOf(1), call())).toEqual({ entry: undefined, pins: [], window: undefined })
    expect((await catalog.usage(call())).kv).toEqual({ entries: 0, bytes: 0 })
    expect(await catalog.staged([stageOf(1)], call())).toEqual([false])
    expect(await catalog.trash(undefined, 10, call())).toEqual([])
    expect(await catalog.known(found, call())).toEqual([false])
    expect(await catalog.mark(keyOf(1), call())).toBe('absent')
    expect(await catalog.pin([{ key: keyOf(1), pin: pinOf(), ttlMs: 1 }], call())).toEqual([undefined])
    expect(await catalog.unstage([stageOf(1)], call())).toEqual([false])
    await catalog.release([pin], call())
    const request = { pins: [pin], pinTtlMs: 1, stages: [stageOf(1)], stageTtlMs: 1, revive: false }
    expect(await catalog.renew(request, call())).toEqual({ pins: [pin], stages: [stageOf(1)] })
    expect(await catalog.meta.compareAndSet(record, { ...record, windowDelayMs: 1 }, call())).toBe(false)
    expect(readdirSync(parent)).toEqual([])
  })

  test('is no place to publish, stage or discard before there is a record', async () => {
    const parent = folder()
    const { catalog, classify } = await openFile(join(parent, 'pool.db'))
    for (const write of [
      () => catalog.publish([inline(1)], call()),
      () => catalog.stage([{ id: stageOf(1), ttlMs: 1 }], call()),
      () => catalog.discard([{ stage: stageOf(1) }], call())
    ]) {
      expect(classify(await write().catch(error => error))).toBe('foreign')
    }
    expect(readdirSync(parent)).toEqual([])
  })

  test('is noticed when another process makes it', async () => {
    const file = join(folder(), 'pool.db')
    const early = await openFile(file)
    expect(await early.catalog.meta.read(call())).toBeUndefined()
    const { catalog } = await openPool({ file })
    await catalog.publish([inline(1)], call())
    expect(await early.catalog.meta.read(call())).toEqual(record)
    expect((await early.catalog.find([keyOf(1)], call()))[0]?.key).toBe(keyOf(1))
  })
})

describe('a virgin file', () => {
  test('of length zero is read as absent, left at length zero, and becomes a pool', async () => {
    const parent = folder()
    const file = join(parent, 'pool.db')
    writeFileSync(file, '')
    const { catalog } = await openFile(file)
    expect(await catalog.meta.read(call())).toBeUndefined()
    expect(readdirSync(parent)).toEqual(['pool.db'])
    expect(statSync(file).size).toBe(0)
    expect(await catalog.meta.compareAndSet(undefined, record, call())).toBe(true)
    expect(await catalog.meta.read(call())).toEqual(record)
  })

  test.each(['DELETE', 'WAL'])(
    'that is an empty database in mode %s is read as absent and becomes a pool',
    async mode => {
      const parent = folder()
      const file = join(parent, 'pool.db')
      const db = new Database(file)
      db.pragma(`journal_mode = ${mode}`)
      db.exec('CREATE TABLE t (a); DROP TABLE t')
      db.close()
      const { catalog } = await openFile(file)
      expect(await catalog.list(undefined, 1, call())).toEqual([])
      expect(readdirSync(parent)).toEqual(['pool.db'])
      expect(await catalog.meta.compareAndSet(undefined, record, call())).toBe(true)
    }
  )
})

describe('a file that is locked against readers', () => {
  const locked = (file: string) => {
    const db = new Database(file)
    db.exec('CREATE TABLE t (a); DROP TABLE t; BEGIN EXCLUSIVE')
    return () => db.close()
  }

  test('is waited for by opening and by reading', async () => {
    const file = join(folder(), 'pool.db')
    const early = await openFile(file)
    const release = locked(file)
    setTimeout(release, 40)
    const [{ catalog }, found] = await Promise.all([openFile(file), early.catalog.meta.read(call())])
    expect([found, await catalog.meta.read(call())]).toEqual([undefined, undefined])
  })

  test('ends the wait after the lock timeout, and is not taken for an empty pool', async () => {
    const file = join(folder(), 'pool.db')
    const { catalog, classify } = await openFile(file, { lockTimeoutMs: 40 })
    const release = locked(file)
    expect(classify(await catalog.meta.read(call()).catch(error => error))).toBe('conflict')
    release()
  })
})

describe('a file that is no pool of this layout', () => {
  test('is refused as foreign: another database, with tables or an application id; a text; a folder', async () => {
    const parent = folder()
    const [tables, application, text, directory] = ['a', 'b', 'c', 'd'].map(name => join(parent, name)) as [
      string,
      string,
      string,
      string
    ]
    sql(tables, 'CREATE TABLE t (a)')
    const db = new Database(application)
    db.exec('PRAGMA application_id = 7; CREATE TABLE t (a); DROP TABLE t')
    db.close()
    writeFileSync(text, 'This is no database at all, but long enough to be one page. '.repeat(100))
    mkdirSync(directory)
    for (const file of [tables, application, text, directory]) expect(await codeOf(open(file))).toBe('foreign')
  })

  test('is refused as foreign by the first write when it appears after the opening, and is not changed', async () => {
    const file = join(folder(), 'pool.db')
    const { catalog, classify } = await openFile(file)
    sql(file, 'CREATE TABLE t (a)')
    expect(classify(await catalog.meta.compareAndSet(undefined, record, call()).catch(e => e))).toBe('foreign')
    expect(sql(file, 'SELECT name FROM sqlite_schema')).toEqual([{ name: 't' }])
  })

  test('is refused as newer when its layout is of a later version', async () => {
    const { file, engine } = await openPool()
    await engine.close()
    const db = new Database(file)
    db.pragma('user_version = 2')
    db.close()
    expect(await codeOf(open(file))).toBe('newer')
  })

  test('is read but not written when its protocol is later', async () => {
    const { catalog, engine, sql } = await openPool()
    await catalog.publish([inline(1)], call())
    const lease = await catalog.lease(call())
    if (!lease) throw new Error('no lease')
    sql('UPDATE meta SET protocol = 99')
    expect((await catalog.read(keyOf(1), call()))?.entry.key).toBe(keyOf(1))
    const writes: (() => Promise<unknown>)[] = [
      () => catalog.publish([inline(2)], call()),
      () => catalog.pin([{ key: keyOf(1), pin: pinOf(), ttlMs: 1 }], call()),
      () => catalog.stage([{ id: stageOf(1), ttlMs: 1 }], call()),
      () => catalog.mark(keyOf(1), call()),
      () => catalog.stageCandidates(lease, [keyOf(1)], call()),
      () => catalog.remove([{ kind: 'candidate', key: keyOf(1), live: false }], 0, lease, call()),
      () => catalog.discard([{ stage: stageOf(1) }], call())
    ]
    for (const write of writes) expect(engine.classify(await write().catch(error => error))).toBe('newer')
    expect(sql('SELECT (SELECT count(*) FROM entries) AS n, (SELECT count(*) FROM gc_window) AS w')).toEqual([
      { n: 1, w: 0 }
    ])
  })
})

describe('what is made', () => {
  test('is for its owner alone: folders 0700, file, log, index and lease 0600', async () => {
    const file = join(folder(), 'a', 'b', 'pool.db')
    const { catalog } = await openPool({ file })
    await catalog.publish([inline(1)], call())
    await catalog.lease(call())
    const modeOf = (path: string) => (statSync(path).mode & 0o777).toString(8)
    expect([modeOf(join(file, '..', '..')), modeOf(join(file, '..'))]).toEqual(['700', '700'])
    expect(['', '-wal', '-shm', '-lease'].map(suffix => modeOf(file + suffix))).toEqual(['600', '600', '600', '600'])
    expect(readdirSync(join(file, '..')).sort()).toEqual(['pool.db', 'pool.db-lease', 'pool.db-shm', 'pool.db-wal'])
  })

  test('keeps the mode that a file made by hand has', async () => {
    const file = join(folder(), 'pool.db')
    writeFileSync(file, '')
    chmodSync(file, 0o640)
    const { catalog } = await openPool({ file })
    await catalog.publish([inline(1)], call())
    expect(statSync(`${file}-wal`).mode & 0o777).toBe(0o640)
  })

  test('is one file again after close', async () => {
    const { file, engine, catalog } = await openPool()
    await catalog.publish([inline(1)], call())
    expect(existsSync(`${file}-wal`)).toBe(true)
    await engine.close()
    expect(readdirSync(join(file, '..'))).toEqual(['pool.db'])
  })

  test('is marked as a pool, in pages of 16 KiB, with raw keys in strict tables', async () => {
    const { catalog, sql } = await openPool()
    await catalog.publish([inline(1)], call())
    expect(sql('PRAGMA page_size')).toEqual([{ page_size: 16384 }])
    expect(sql('PRAGMA journal_mode')).toEqual([{ journal_mode: 'wal' }])
    expect(sql('PRAGMA application_id')).toEqual([{ application_id: 0x616c6b62 }])
    expect(sql('SELECT typeof(key) AS t, length(key) AS n FROM entries')).toEqual([{ t: 'blob', n: 32 }])
    expect(
      sql(
        "SELECT count(*) AS n FROM pragma_table_list WHERE schema = 'main' AND strict = 0 AND name NOT LIKE 'sqlite%'"
      )
    ).toEqual([{ n: 0 }])
  })
})

describe('the record', () => {
  test('is replaced only if it is the expected one', async () => {
    const { catalog } = await openPool()
    const next = { ...record, windowDelayMs: 5 }
    expect(await catalog.meta.compareAndSet(undefined, next, call())).toBe(false)
    expect(await catalog.meta.compareAndSet({ ...record, windowDelayMs: 1 }, next, call())).toBe(false)
    expect(await catalog.meta.compareAndSet(record, next, call())).toBe(true)
    expect(await catalog.meta.read(call())).toEqual(next)
  })

  test('says which pool it was copied from for as long as it is told to', async () => {
    const { catalog } = await openPool()
    const half = { ...record, poolId: 'the copy' as never, forkedFrom: record.poolId }
    expect(await catalog.meta.compareAndSet(record, half, call())).toBe(true)
    expect(await catalog.meta.read(call())).toEqual(half)
    const { forkedFrom: _, ...whole } = { ...half, bodiesClaimed: true }
    // Not the same record: what it was copied from is a part of it.
    expect(await catalog.meta.compareAndSet({ ...whole, bodiesClaimed: false }, whole, call())).toBe(false)
    expect(await catalog.meta.compareAndSet(half, whole, call())).toBe(true)
    expect(await catalog.meta.read(call())).toEqual(whole)
  })

  test('is written by exactly one of many who make the pool at once', async () => {
    const file = join(folder(), 'x', 'pool.db')
    const engines = await Promise.all(Array.from({ length: 8 }, () => openFile(file)))
    const won = await Promise.all(engines.map(({ catalog }) => catalog.meta.compareAndSet(undefined, record, call())))
    expect(won.filter(Boolean)).toHaveLength(1)
  })
})
