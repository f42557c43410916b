/** The promises of a factory that the rows build on: isolation, honest traits, a teardown that always works. */
import { row, runRow, type StoreFactory, type Trait } from '@alkblobs/conformance'
import { describe, expect, test } from 'vitest'
import type { ColumnFactory } from '../src/index.js'

export function describeFactory(make: () => ColumnFactory): void {
  describe(`the factory of ${make().name}`, () => {
    test('vends fresh stores that share nothing', async () => {
      const factory = make()
      const [one, other] = [await factory.open(), await factory.open()]
      const { key } = await one.put('only in one')
      expect(await other.has(key)).toBe(false)
      expect((await other.usage()).entries).toBe(0)
      await factory.teardown()
    })

    test('tears down twice, over open, closed and abandoned stores', async () => {
      const factory = make()
      const [open, closed, abandoned] = [await factory.open(), await factory.open(), await factory.open()]
      await open.put('open')
      await closed.close()
      const writer = abandoned.writer()
      await writer.write(new Uint8Array(200_000).subarray(0, 50_000))
      await factory.teardown()
      await factory.teardown()
      await expect(open.put('late')).rejects.toMatchObject({ code: 'ERR_BLOB_STORE_CLOSED' })
      await expect(writer.commit()).rejects.toThrow()
    })

    test('is clean after a row that threw in the middle', async () => {
      const factory = make()
      let opened: Awaited<ReturnType<StoreFactory['open']>> | undefined
      const throwing = row({
        name: 'it_throws',
        statement: 'It throws.',
        stamps: ['docs/x.md#y'],
        invariant: 'INV-1',
        async run(given) {
          opened = await given.open()
          await opened.put('left behind')
          throw new Error('in the middle')
        }
      })
      await expect(runRow(factory, throwing)).rejects.toThrow('in the middle')
      await expect(opened?.put('late')).rejects.toMatchObject({ code: 'ERR_BLOB_STORE_CLOSED' })
    })

    test('does not touch what another factory of its kind made', async () => {
      const [mine, theirs] = [make(), make()]
      const [own, other] = await Promise.all([mine.open(), theirs.open()])
      await Promise.all([own.put('mine'), other.put('theirs')])
      const { key } = await other.put(new Uint8Array(20_000))
      await mine.teardown()
      expect((await other.get(key))?.size).toBe(20_000)
      expect((await other.usage()).entries).toBe(2)
      await theirs.teardown()
    })

    test('has what its traits promise, and nothing it does not promise', async () => {
      const factory = make()
      const store = await factory.open()
      const has = (trait: Trait) => factory.traits.includes(trait)
      expect(factory.traits.filter(trait => trait === store.mode)).toEqual([store.mode])
      expect(factory.traits.filter(trait => ['mem-only', 'kv-only', 'dual-tier'].includes(trait))).toEqual([store.mode])
      expect(factory.traits.filter(trait => ['inline', 'durable'].includes(trait))).toEqual([store.form])
      for (const method of ['second', 'reopen', 'foreign'] as const)
        expect(factory[method] !== undefined, method).toBe(has(method))
      if (factory.threshold !== undefined) expect(store.threshold).toBe(factory.threshold)
      const oracle = factory.medium?.(store)
      expect(oracle !== undefined).toBe(has('medium'))
      await store.put('something')
      expect((await oracle?.counts())?.inlineEntries).toBe(1)
      await factory.teardown()
    })

    test('tells its engines by name, version and capability', async () => {
      for (const engine of await make().engines()) {
        expect(engine.name).toMatch(/^[a-z]+$/)
        expect(engine.version).toMatch(/^\d+\.\d+\.\d+/)
        expect(engine.capabilities.some(capability => ['catalog', 'bodies'].includes(capability))).toBe(true)
      }
    })
  })
}
