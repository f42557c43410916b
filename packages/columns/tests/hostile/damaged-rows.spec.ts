/** Rows and files that no engine wrote: one of them is one damaged entry, never more, and never a way out of the root. */
import { mkdirSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import type { BlobKey } from '@alkblobs/core'
import { describe, expect, it } from 'vitest'
import { databasePart } from '../../src/oracles/database.js'
import { failureOf, tamper } from '../bad-input/stores.js'
import { bodyOf, type HostilePool, hostilePool } from './pools.js'

const LENGTH = 1_000
const content = (seed: number) => Buffer.alloc(LENGTH, seed)

type Damage = (pool: HostilePool, key: BlobKey) => void

const setLocator =
  (locator: string): Damage =>
  ({ file }, key) =>
    tamper(file, `UPDATE entries SET locator = '${locator}' WHERE key = x'${key.slice(7)}'`)
const setLength =
  (length: string): Damage =>
  ({ file }, key) =>
    tamper(file, `UPDATE entries SET length = ${length} WHERE key = x'${key.slice(7)}'`)

/** Each leads to a file that is there and has the length of the entry, if anybody takes it for a path. */
const LOCATORS = ['../x', '../../x', '../../../x', './../x', 'x', 'ab/../../x', '//x', '%2e%2e/x', '..\\x', '.']

const DAMAGES: Readonly<Record<string, Damage>> = {
  ...Object.fromEntries(LOCATORS.map(locator => [`the locator "${locator}"`, setLocator(locator)])),
  'an absolute locator': (pool, key) => setLocator(join(pool.folder, 'x'))(pool, key),
  'a locator of a path behind its own name': (pool, key) => {
    const name = bodyOf(pool, key).split('/').at(-1)
    setLocator(`${name}/../../../../x`)(pool, key)
  },
  'a locator of 5,000 characters': setLocator('a'.repeat(5_000)),
  'a folder in the place of its body': (pool, key) => {
    const path = bodyOf(pool, key)
    rmSync(path)
    mkdirSync(path)
  },
  'a link in the place of its body': (pool, key) => {
    const path = bodyOf(pool, key)
    rmSync(path)
    symlinkSync(join(pool.folder, 'x'), path)
  },
  'a negative length': setLength('-5'),
  'a length beyond all numbers': setLength('4611686018427387904')
}

/** Files outside of the root that a path made of a locator could lead to. */
function decoys({ folder, root }: HostilePool): { areWhole(): boolean } {
  mkdirSync(join(root, 'stage'), { recursive: true })
  const paths = [join(folder, 'x'), join(root, 'x'), join(root, 'stage', 'x')]
  const secret = Buffer.alloc(LENGTH, 'secret')
  for (const path of paths) writeFileSync(path, secret)
  return { areWhole: () => paths.every(path => readFileSync(path).equals(secret)) }
}

describe('an entry with', () => {
  it.each(Object.entries(DAMAGES))('%s is damaged, hides no other, and is healed by a put', async (how, damage) => {
    const pool = hostilePool()
    const before = await pool.open()
    const sound = await before.put(content(1))
    const { key } = await before.put(content(2))
    const other = await before.put(content(3))
    await before.close()
    const outside = decoys(pool)
    damage(pool, key)

    const store = await pool.open()
    for (const verify of [true, false]) {
      const error = await failureOf(async () => (await store.get(key, { verify }))?.bytes())
      expect(error).toMatchObject({ code: expect.stringMatching(/^ERR_BLOB_(CORRUPT|ENGINE)$/) })
    }
    const report = await store.verify()
    expect(report).toMatchObject({ entries: 3, clean: false })
    expect([...report.corrupt, ...report.dangling].map(each => each.key)).toEqual([key])
    for (const each of [sound, other]) expect((await (await store.get(each.key))?.bytes())?.length).toBe(LENGTH)

    const healed = await store.put(content(2))
    expect(healed.key).toBe(key)
    expect(Buffer.compare((await (await store.get(key))?.bytes()) ?? Buffer.alloc(0), content(2))).toBe(0)
    expect(await store.verify()).toMatchObject({ entries: 3, corrupt: [], dangling: [] })
    await healed.release()
    expect(await store.delete(key)).toBe(true)
    // A folder is nobody's file to unlink: it stays trash, and each attempt to drop it is reported.
    const left = how === 'a folder in the place of its body' ? 1 : 0
    await databasePart(pool.file).age(24 * 3_600_000)
    expect((await store.maintain()).failed).toHaveLength(left)
    expect(await store.usage()).toMatchObject({ entries: 2, stages: 0, trash: left })
    expect(outside.areWhole()).toBe(true)
  })

  it.each(Object.entries(DAMAGES))('%s can be deleted and swept away, and its row does not stay', async (_, damage) => {
    for (const way of ['delete', 'sweep'] as const) {
      const pool = hostilePool()
      const before = await pool.open()
      const { key } = await before.put(content(2))
      await before.close()
      const outside = decoys(pool)
      damage(pool, key)
      const store = await pool.open()
      store.protect({ name: 'nothing', live: () => [] })
      if (way === 'delete') expect(await store.delete(key)).toBe(true)
      else {
        expect(await store.sweep()).toMatchObject({ candidatesStaged: 1 })
        expect(await store.sweep()).toMatchObject({ deleted: 1 })
      }
      expect(await store.has(key)).toBe(false)
      expect((await store.usage()).entries).toBe(0)
      expect(outside.areWhole()).toBe(true)
    }
  })
})
