import { randomBytes } from 'node:crypto'
import { join } from 'node:path'
import Database from 'better-sqlite3'
import { afterEach, describe, expect, onTestFinished, test, vi } from 'vitest'
import { catalogOf } from '../src/catalog/index.js'
import { classify } from '../src/classify.js'
import { Medium } from '../src/medium.js'
import { Pool } from '../src/pool.js'
import { byKey, call, folder, HOUR, inline, keyOf, openPool, pinned, record, sleep, sql } from './fixture.js'

afterEach(() => vi.restoreAllMocks())

const statements = () => {
  const spy = vi.spyOn(Database.prototype, 'exec')
  return (text: string) => spy.mock.calls.filter(([ran]) => ran === text).length
}

/** A pool whose connection the test may touch, to bound the file. */
async function bounded() {
  const file = join(folder(), 'pool.db')
  const medium = new Medium({ file, durability: 'disk' })
  onTestFinished(() => medium.close())
  const { catalog } = catalogOf(new Pool(medium, { algorithm: 'blake3', lockTimeoutMs: 500, connectTimeoutMs: 500 }))
  await catalog.meta.compareAndSet(undefined, record, call())
  const limit = (pages: number) => medium.attach()?.exec(`PRAGMA max_page_count = ${pages}`)
  return { file, catalog, limit }
}

/** Another connection that has the file locked until it is told to let go. */
function lock(file: string) {
  const db = new Database(file)
  onTestFinished(() => void db.close())
  db.exec('BEGIN IMMEDIATE')
  return () => db.exec('COMMIT')
}

describe('concurrent writes', () => {
  test('share few transactions', async () => {
    const { catalog } = await openPool()
    const ran = statements()
    await Promise.all(
      Array.from({ length: 64 }, (_, n) => catalog.publish([inline(n, randomBytes(1000), pinned())], call()))
    )
    expect(ran('COMMIT')).toBeLessThanOrEqual(2)
    expect(await catalog.list(undefined, 100, call())).toHaveLength(64)
  })

  test('of large bodies share transactions of bounded size', async () => {
    const { catalog } = await openPool()
    const ran = statements()
    await Promise.all(
      Array.from({ length: 16 }, (_, n) => catalog.publish([inline(n, new Uint8Array(1024 * 1024))], call()))
    )
    expect(ran('COMMIT')).toBe(8)
  })

  test('wait for no turn of the event loop where each comes alone', async () => {
    const { catalog } = await openPool()
    await catalog.publish([inline(1)], call())
    let turned = false
    setImmediate(() => {
      turned = true
    })
    await catalog.publish([inline(2)], call())
    expect(turned).toBe(false)
  })

  test('are joined again when company comes back', async () => {
    const { catalog } = await openPool()
    await catalog.publish([inline(0)], call())
    const ran = statements()
    // Lanes that take a different number of steps to come back, as callers do.
    const lane = async (lane: number) => {
      for (let n = 0; n < 8; n++) {
        for (let step = 0; step < lane * 4; step++) await undefined
        await catalog.publish([inline(1 + lane * 8 + n)], call())
      }
    }
    await Promise.all(Array.from({ length: 8 }, (_, n) => lane(n)))
    expect(ran('COMMIT')).toBeLessThanOrEqual(10)
  })

  test('see each other: of many puts of one key one is created, the others exist', async () => {
    const { catalog } = await openPool()
    const body = randomBytes(10)
    const outcomes = await Promise.all(Array.from({ length: 20 }, () => catalog.publish([inline(1, body)], call())))
    expect(outcomes.filter(([one]) => one?.outcome === 'created')).toHaveLength(1)
  })

  test('fail alone: the others of the batch are kept', async () => {
    const { catalog, sql } = await openPool()
    sql("CREATE TRIGGER refuse BEFORE INSERT ON entries WHEN NEW.length = 13 BEGIN SELECT raise(ABORT, 'refused'); END")
    const settled = await Promise.allSettled(
      [1, 2, 3, 4].map(n => catalog.publish([inline(n, new Uint8Array(n === 2 ? 13 : 9))], call()))
    )
    expect(settled.map(({ status }) => status)).toEqual(['fulfilled', 'rejected', 'fulfilled', 'fulfilled'])
    expect((await catalog.list(undefined, 9, call())).map(({ key }) => key)).toEqual([1, 3, 4].map(keyOf))
  })

  test('of one call are all or nothing', async () => {
    const { catalog, sql } = await openPool()
    sql("CREATE TRIGGER refuse BEFORE INSERT ON entries WHEN NEW.length = 13 BEGIN SELECT raise(ABORT, 'refused'); END")
    await expect(catalog.publish([inline(1), inline(2, new Uint8Array(13))], call())).rejects.toThrow('refused')
    expect(sql('SELECT (SELECT count(*) FROM entries) + (SELECT count(*) FROM bodies) AS n')).toEqual([{ n: 0 }])
  })
})

describe('a full file', () => {
  test('rejects what does not fit and nothing else, and takes it when there is room again', async () => {
    const { catalog, limit, file } = await bounded()
    limit(40)
    const big = inline(1, randomBytes(2_000_000), pinned())
    const [first, second] = await Promise.allSettled([
      catalog.publish([big], call()),
      catalog.publish([inline(2)], call())
    ])
    expect(classify(first.status === 'rejected' && first.reason)).toBe('full')
    expect(second.status).toBe('fulfilled')
    expect(classify(await catalog.publish([big], call()).catch(error => error))).toBe('full')
    expect(sql(file, 'SELECT (SELECT count(*) FROM entries) AS e, (SELECT count(*) FROM gc_pins) AS p')).toEqual([
      { e: 1, p: 0 }
    ])
    await catalog.publish([inline(3)], call())
    expect(await catalog.read(keyOf(3), call())).toBeDefined()
    limit(10_000)
    expect(await catalog.publish([big], call())).toMatchObject([{ outcome: 'created' }])
  })
})

describe('a file that another connection has locked', () => {
  test('is waited for without blocking the event loop, and reads go on', async () => {
    const { catalog, file } = await openPool()
    const release = lock(file)
    const put = catalog.publish([inline(1)], call())
    let turns = 0
    const ticking = setInterval(() => turns++, 1)
    await sleep(60)
    clearInterval(ticking)
    expect(turns).toBeGreaterThan(0)
    expect(await catalog.find([keyOf(1)], call())).toEqual([undefined])
    release()
    expect(await put).toMatchObject([{ outcome: 'created' }])
  })

  test('ends the wait at the deadline with an error that says so', async () => {
    const { catalog, file, engine } = await openPool()
    lock(file)
    const started = performance.now()
    const error = await catalog.publish([inline(1)], call(80)).catch(error => error)
    expect(performance.now() - started).toBeLessThan(2_000)
    expect(['conflict', 'transient']).toContain(engine.classify(error))
  })

  test('ends the wait after the lock timeout', async () => {
    const { catalog, file, engine } = await openPool({ lockTimeoutMs: 50 })
    const release = lock(file)
    expect(engine.classify(await catalog.publish([inline(1)], call(10_000)).catch(error => error))).toBe('conflict')
    release()
    expect(await catalog.publish([inline(2)], call())).toMatchObject([{ outcome: 'created' }])
    expect(await catalog.find([keyOf(1)], call())).toEqual([undefined])
  })

  test('lets a call go whose signal fires, which then has written nothing', async () => {
    const { catalog, file } = await openPool()
    const release = lock(file)
    const controller = new AbortController()
    const put = catalog.publish([inline(1)], call(5_000, controller.signal))
    const other = catalog.publish([inline(2)], call())
    setTimeout(() => controller.abort(new Error('enough')), 20)
    await expect(put).rejects.toThrow('enough')
    release()
    await other
    expect((await catalog.list(undefined, 9, call())).map(({ key }) => key)).toEqual([keyOf(2)])
  })

  test('leaves no timer behind', async () => {
    const { catalog, file } = await openPool()
    const release = lock(file)
    const before = process.getActiveResourcesInfo().filter(name => name === 'Timeout').length
    await catalog.publish([inline(1)], call(30)).catch(() => {})
    release()
    expect(process.getActiveResourcesInfo().filter(name => name === 'Timeout').length).toBeLessThanOrEqual(before)
  })
})

describe('a call that is over', () => {
  test('begins nothing: its signal has fired or its deadline has passed', async () => {
    const { catalog, sql } = await openPool()
    const fired = call(5_000, AbortSignal.abort(new Error('enough')))
    await expect(catalog.publish([inline(1)], fired)).rejects.toThrow('enough')
    await expect(catalog.read(keyOf(1), fired)).rejects.toThrow('enough')
    await expect(catalog.publish([inline(1)], call(-1))).rejects.toThrow('deadline')
    await expect(catalog.find([keyOf(1)], call(-1))).rejects.toThrow('deadline')
    expect(sql('SELECT * FROM entries')).toEqual([])
  })

  test('while it waited in the queue is dropped before its transaction', async () => {
    const { catalog } = await openPool()
    const controller = new AbortController()
    const put = catalog.publish([inline(1)], call(5_000, controller.signal))
    controller.abort(new Error('enough'))
    await expect(put).rejects.toThrow('enough')
    expect(await catalog.publish([byKey(1, pinned(HOUR))], call())).toEqual([{ outcome: 'absent' }])
  })
})

describe('durability', () => {
  const synchronous = async (durability: 'disk' | 'os') => {
    const medium = new Medium({ file: join(folder(), 'pool.db'), durability })
    onTestFinished(() => medium.close())
    const { catalog } = catalogOf(new Pool(medium, { algorithm: 'blake3', lockTimeoutMs: 500, connectTimeoutMs: 500 }))
    await catalog.meta.compareAndSet(undefined, record, call())
    await catalog.publish([inline(1)], call())
    return medium.attach()?.pragma('synchronous')
  }

  test('is in force after the first commit: FULL, or NORMAL when the system is trusted', async () => {
    expect(await synchronous('disk')).toBe(2)
    expect(await synchronous('os')).toBe(1)
    expect((await openPool()).engine.durability).toBe('disk')
    expect((await openPool({ durability: 'os' })).engine.durability).toBe('os')
  })

  test('that is not in force is an error, not a promise', async () => {
    const medium = new Medium({ file: join(folder(), 'pool.db'), durability: 'disk' })
    onTestFinished(() => medium.close())
    const { catalog } = catalogOf(new Pool(medium, { algorithm: 'blake3', lockTimeoutMs: 500, connectTimeoutMs: 500 }))
    const weaken = medium.create()
    weaken.setDurability('os')
    await expect(catalog.meta.compareAndSet(undefined, record, call())).rejects.toThrow('synchronous is 1')
  })

  test('of trash is that of the disk even where the system is trusted', async () => {
    const { catalog } = await openPool({ durability: 'os' })
    await catalog.discard([{ stage: '1'.repeat(32) as never }], call())
    const log: string[] = []
    const { exec, pragma } = Database.prototype
    vi.spyOn(Database.prototype, 'exec').mockImplementation(function (this: Database.Database, text) {
      log.push(text)
      return exec.call(this, text)
    })
    vi.spyOn(Database.prototype, 'pragma').mockImplementation(function (this: Database.Database, text, options) {
      log.push(text)
      return pragma.call(this, text, options)
    })
    expect(await catalog.trash(undefined, 9, call())).toHaveLength(1)
    expect(log.filter(text => !text.startsWith('ROLL'))).toEqual([
      'synchronous = 2',
      'BEGIN IMMEDIATE',
      'COMMIT',
      'synchronous = 1'
    ])
  })
})
