import { closeSync, copyFileSync, existsSync, openSync, readdirSync, renameSync, rmSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { EngineFault } from '@alkblobs/core/engine'
import Database from 'better-sqlite3'
import { afterEach, describe, expect, test, vi } from 'vitest'
import { classify } from '../src/classify.js'
import { call, folder, inline, keyOf, openFile, openPool } from './fixture.js'

afterEach(() => vi.restoreAllMocks())

const code = (promise: Promise<unknown>) =>
  promise.then(
    () => 'resolved',
    error => classify(error)
  )

describe('a file that is moved, removed or replaced under an open store', () => {
  test('is an error of the medium for reads and writes, never absence, until it is back', async () => {
    const { catalog, file } = await openPool()
    await catalog.publish([inline(1)], call())
    renameSync(file, `${file}-moved`)
    expect(await code(catalog.read(keyOf(1), call()))).toBe('transient')
    expect(await code(catalog.find([keyOf(2)], call()))).toBe('transient')
    expect(await code(catalog.publish([inline(2)], call()))).toBe('transient')
    expect(await code(catalog.meta.compareAndSet(undefined, {} as never, call()))).toBe('transient')
    expect(await code(catalog.lease(call()))).toBe('transient')
    expect(existsSync(file)).toBe(false)
    renameSync(`${file}-moved`, file)
    expect((await catalog.read(keyOf(1), call()))?.entry.key).toBe(keyOf(1))
    expect(await code(catalog.publish([inline(2)], call()))).toBe('resolved')
  })

  test('by another file stays an error: nothing is written to either', async () => {
    const { catalog, file } = await openPool()
    await catalog.publish([inline(1)], call())
    copyFileSync(file, `${file}-copy`)
    renameSync(`${file}-copy`, file)
    expect(await code(catalog.publish([inline(2)], call()))).toBe('transient')
    expect(await code(catalog.list(undefined, 9, call()))).toBe('transient')
  })

  test('is noticed by every look of the next turn, whatever the looks before it found', async () => {
    const { catalog, file } = await openPool()
    await catalog.publish([inline(1)], call())
    expect((await catalog.read(keyOf(1), call()))?.entry.key).toBe(keyOf(1))
    renameSync(file, `${file}-moved`)
    await new Promise(setImmediate)
    expect(await code(catalog.read(keyOf(1), call()))).toBe('transient')
    expect(await code(catalog.list(undefined, 9, call()))).toBe('transient')
  })

  test('in the middle of a transaction is an error: what was committed went into a file without a name', async () => {
    const { catalog, file } = await openPool()
    const { exec } = Database.prototype
    vi.spyOn(Database.prototype, 'exec').mockImplementation(function (this: Database.Database, text) {
      if (text === 'COMMIT') renameSync(file, `${file}-moved`)
      return exec.call(this, text)
    })
    expect(await code(catalog.publish([inline(1)], call()))).toBe('transient')
  })

  test('with its folder is an error, and the folder is not made again', async () => {
    const parent = folder()
    const { catalog } = await openPool({ file: join(parent, 'root', 'pool.db') })
    rmSync(join(parent, 'root'), { recursive: true })
    expect(await code(catalog.publish([inline(1)], call()))).toBe('transient')
    expect(await code(catalog.lease(call()))).toBe('transient')
    expect(readdirSync(parent)).toEqual([])
  })
})

describe('classify', () => {
  const error = (code: string) => Object.assign(new Error('failed'), { code })
  test.each([
    ['SQLITE_BUSY', 'conflict'],
    ['SQLITE_BUSY_SNAPSHOT', 'conflict'],
    ['SQLITE_LOCKED', 'conflict'],
    ['SQLITE_FULL', 'full'],
    ['SQLITE_READONLY', 'denied'],
    ['SQLITE_READONLY_DBMOVED', 'transient'],
    ['SQLITE_CANTOPEN', 'denied'],
    ['SQLITE_CORRUPT_VTAB', 'corrupt'],
    ['SQLITE_NOTADB', 'corrupt'],
    ['SQLITE_IOERR_FSYNC', 'transient'],
    ['SQLITE_IOERR_NOMEM', 'exhausted'],
    ['SQLITE_CONSTRAINT', 'unknown'],
    ['EACCES', 'denied'],
    ['EROFS', 'denied'],
    ['ENOSPC', 'full'],
    ['EMFILE', 'exhausted'],
    ['ENOENT', 'transient'],
    ['EIO', 'transient']
  ])('calls %s %s', (code, kind) => {
    expect(classify(error(code))).toBe(kind)
  })

  test('answers for anything that can be thrown', () => {
    expect([undefined, null, 7, 'text', {}, new Error('plain'), { code: 'SQLITE_FULL' }].map(classify)).toEqual(
      Array(7).fill('unknown')
    )
    expect(classify(new EngineFault('gone', 'it is gone'))).toBe('gone')
  })

  test('names damage inside the file corrupt, and it is not absence', async () => {
    const { catalog, file, engine } = await openPool()
    await catalog.publish([inline(1)], call())
    await engine.close()
    const descriptor = openSync(file, 'r+')
    for (let page = 1; page < 8; page++) writeSync(descriptor, Buffer.alloc(16384, 0xee), 0, 16384, page * 16384)
    closeSync(descriptor)
    const again = await openFile(file)
    expect(await code(again.catalog.find([keyOf(1)], call()))).toBe('corrupt')
  })
})
