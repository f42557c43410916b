import { renameSync, rmSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { call, folder, inline, keyOf, openFile, openPool } from './fixture.js'

describe('the lease', () => {
  test('is held once among all openers of this process, and free after release', async () => {
    const one = await openPool()
    const two = await openPool({ file: one.file })
    const lease = await one.catalog.lease(call())
    expect(await one.catalog.lease(call())).toBeUndefined()
    expect(await two.catalog.lease(call())).toBeUndefined()
    await lease?.release()
    await lease?.release()
    const next = await two.catalog.lease(call())
    expect(next).toBeDefined()
    expect(lease?.lost.aborted).toBe(false)
  })

  test('is free again when its holder closes', async () => {
    const one = await openPool()
    const two = await openPool({ file: one.file })
    expect(await one.catalog.lease(call())).toBeDefined()
    await one.engine.close()
    expect(await two.catalog.lease(call())).toBeDefined()
  })

  test('is one for all links that lead to the file', async () => {
    const { file, catalog } = await openPool()
    const link = join(folder(), 'link.db')
    symlinkSync(file, link)
    const linked = await openFile(link)
    expect(await catalog.lease(call())).toBeDefined()
    expect(await linked.catalog.lease(call())).toBeUndefined()
  })

  test('of a virgin file makes the file, but no pool', async () => {
    const { catalog } = await openFile(join(folder(), 'pool.db'))
    const lease = await catalog.lease(call())
    expect(lease).toBeDefined()
    expect(await catalog.meta.read(call())).toBeUndefined()
  })

  test('does not stand in the way of puts and reads', async () => {
    const one = await openPool()
    const two = await openPool({ file: one.file })
    await one.catalog.lease(call())
    await two.catalog.publish([inline(1)], call(500))
    expect(await one.catalog.read(keyOf(1), call(500))).toBeDefined()
  })

  test.each(['file removed', 'file replaced', 'counter raised'])(
    'is lost when its %s: it says so, and nothing is removed',
    async how => {
      const { catalog, engine, file, sql } = await openPool()
      await catalog.publish([inline(1), inline(2)], call())
      const lease = await catalog.lease(call())
      if (!lease) throw new Error('no lease')
      await catalog.stageCandidates(lease, [keyOf(1)], call())
      if (how === 'file removed') rmSync(`${file}-lease`)
      if (how === 'file replaced') {
        renameSync(`${file}-lease`, `${file}-old`)
        const thief = await openPool({ file })
        expect(await thief.catalog.lease(call())).toBeDefined()
      }
      if (how === 'counter raised') sql('UPDATE meta SET lease = lease + 1')
      expect(lease.lost.aborted).toBe(false)
      const error = await catalog
        .remove([{ kind: 'candidate', key: keyOf(1), live: false }], 0, lease, call())
        .catch(error => error)
      expect([engine.classify(error), error.message, lease.lost.aborted]).toEqual(['conflict', 'lease lost', true])
      for (const doubtful of [
        () => catalog.stageCandidates(lease, [keyOf(2)], call()),
        () => catalog.candidates(lease, undefined, 9, call()),
        () => catalog.due(lease, undefined, 9, call()),
        () => catalog.maintain(lease, call())
      ]) {
        await expect(doubtful()).rejects.toThrow('lease lost')
      }
      expect(await catalog.find([keyOf(1)], call())).not.toContain(undefined)
      expect(sql('SELECT count(*) AS n FROM gc_window')).toEqual([{ n: 1 }])
      await lease.release()
    }
  )

  test('of another opener is not accepted', async () => {
    const one = await openPool()
    const two = await openPool({ file: one.file })
    await one.catalog.publish([inline(1)], call())
    const lease = await one.catalog.lease(call())
    if (!lease) throw new Error('no lease')
    await expect(two.catalog.stageCandidates(lease, [keyOf(1)], call())).rejects.toThrow('lease lost')
  })
})
