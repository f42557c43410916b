/** Memory beside large objects: what follows from two catalogs in one store, and has no row because no other column has it. */
import { openStore, type Store, type StoreOptions } from '@alkblobs/core'
import { mem } from '@alkblobs/engine-mem'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'
import { freshDatabase, noServer, type TestDatabase } from '@alkblobs/testkit'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'

const THRESHOLD = 3000
const SHORT = Buffer.alloc(100, 1)
const LONG = Buffer.alloc(5000, 2)

describe.skipIf(noServer() !== undefined)('a store with two catalogs', () => {
  let database: TestDatabase
  const stores: Store[] = []

  beforeEach(async () => {
    database = await freshDatabase()
  })
  afterEach(async () => {
    await Promise.all(stores.splice(0).map(store => store.close()))
    await database.drop()
  })

  const open = async (options: Partial<StoreOptions> = {}) => {
    const { url } = database
    const large = pglo({ url })
    const store = await openStore({
      kv: mem(),
      large,
      threshold: THRESHOLD,
      windowDelayMs: 0,
      trashDelayMs: 0,
      ...options
    })
    stores.push(store)
    return store
  }
  const putReleased = async (store: Store, content: Uint8Array) => {
    const { key, release } = await store.put(content).then(receipt => ({
      key: receipt.key,
      release: () => receipt.release()
    }))
    await release()
    return key
  }
  const table = async (rows: readonly string[]) => {
    await database.query('CREATE TABLE IF NOT EXISTS attachments (blob text PRIMARY KEY)')
    for (const row of rows) await database.query('INSERT INTO attachments VALUES ($1)', [row])
    return { table: 'attachments', column: 'blob' }
  }

  it('shares long entries with others and keeps short ones to itself', async () => {
    const [one, other] = [await open(), await open()]
    const [short, long] = [await one.put(SHORT), await one.put(LONG)]
    expect(await other.has(long.key)).toBe(true)
    expect(await other.has(short.key)).toBe(false)
    other.protect({ name: 'none', live: () => [] })
    await other.sweep()
    expect((await other.sweep()).deleted).toBe(0)
    await expect(other.delete(long.key)).rejects.toMatchObject({ code: 'ERR_BLOB_GC_REFUSED', reason: 'pinned' })
    await long.release()
    await one.close()
    expect(await other.delete(long.key)).toBe(true)
  })

  it('ends with its process, but for what is long', async () => {
    const one = await open()
    const [short, long] = [await putReleased(one, SHORT), await putReleased(one, LONG)]
    await one.close()
    const again = await open()
    expect(await again.has(short)).toBe(false)
    expect(Buffer.from((await (await again.get(long))?.bytes()) ?? [])).toEqual(LONG)
    expect(await again.verify()).toMatchObject({ clean: true, entries: 1 })
  })

  it('finds a short body among the long ones after its threshold was raised, and heals it there', async () => {
    const one = await open()
    const key = await putReleased(one, LONG)
    await one.close()
    const raised = await open({ threshold: 2 * LONG.length })
    expect(await raised.put(LONG)).toMatchObject({ key, created: false })
    expect((await raised.stat(key))?.tier).toBe('large')
    expect(await raised.usage()).toMatchObject({ entries: 1, pins: 1 })
    await database.query('SELECT lo_truncate64(lo_open(loid, 131072), 10) FROM alkblobs_pglo.lo_entries')
    await raised.put(LONG, { verify: true })
    expect(Buffer.from((await (await raised.get(key))?.bytes()) ?? [])).toEqual(LONG)
    expect(await raised.usage()).toMatchObject({ entries: 1 })
  })

  it('judges short keys by tables of the application too', async () => {
    const store = await open()
    const [kept, long] = [await putReleased(store, SHORT), await putReleased(store, LONG)]
    const dead = await putReleased(store, Buffer.alloc(99, 3))
    await store.protect(await table([kept, long]))
    expect(await store.sweep({ dryRun: true })).toMatchObject({ live: 2, candidatesStaged: 1 })
    expect(await store.sweep()).toMatchObject({ live: 2, candidatesStaged: 1 })
    expect(await store.sweep()).toMatchObject({ live: 2, deleted: 1 })
    expect(await store.has(dead)).toBe(false)
    await expect(store.delete(kept)).rejects.toMatchObject({ reason: 'live' })
    expect((await store.why(kept)).liveBy).toEqual(['attachments.blob'])
  })

  it('executes no short candidate that a table references by now', async () => {
    const store = await open()
    const key = await putReleased(store, SHORT)
    await store.protect(await table([]))
    expect(await store.sweep()).toMatchObject({ candidatesStaged: 1 })
    await table([key])
    expect(await store.sweep()).toMatchObject({ deleted: 0, cancelledByArbitration: 1, live: 1 })
  })

  it('removes nothing when a table cannot be trusted, and goes on when it can', async () => {
    const store = await open()
    const key = await putReleased(store, SHORT)
    const protection = await store.protect(await table([]))
    await store.sweep()
    await database.query('ALTER TABLE attachments RENAME TO elsewhere')
    expect(await store.sweep()).toMatchObject({ aborted: 'ProtectFailed', deleted: 0 })
    await expect(store.delete(key)).rejects.toMatchObject({ kind: 'liveness' })
    expect(await store.has(key)).toBe(true)
    protection.remove()
    expect(await store.delete(key)).toBe(true)
  })

  it('refuses large objects of a pool whose catalog is elsewhere, and the other way round', async () => {
    const { url } = database
    const other = await openStore({ kv: postgres({ url, schema: 'kv' }), large: pglo({ url }), threshold: THRESHOLD })
    await other.put(LONG)
    await other.close()
    await expect(open()).rejects.toMatchObject({ code: 'ERR_BLOB_POOL_REFUSED', reason: 'media' })

    await database.query('DROP SCHEMA kv CASCADE')
    await database.query('SELECT lo_unlink(loid) FROM alkblobs_pglo.lo_entries')
    await database.query('DROP SCHEMA alkblobs_pglo CASCADE')
    await (await open()).put(LONG)
    await expect(openStore({ kv: postgres({ url, schema: 'kv' }), large: pglo({ url }) })).rejects.toMatchObject({
      code: 'ERR_BLOB_POOL_REFUSED',
      reason: 'media'
    })
  })

  it('lets one of two sweep', async () => {
    const [one, other] = [await open(), await open()]
    const long = await putReleased(one, LONG)
    let contended: unknown
    one.protect({
      name: 'asks the other',
      async live() {
        contended = await other.sweep()
        return [long]
      }
    })
    other.protect({ name: 'none', live: () => [] })
    expect(await one.sweep()).toMatchObject({ live: 1 })
    expect(contended).toMatchObject({ aborted: 'SweeperLock' })
  })
})
