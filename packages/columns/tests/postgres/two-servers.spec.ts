/**
 * Catalog and bodies on two servers, which is a pair like any other, and pools that were copied or restored without their other half:
 * the claim that lies with the bodies says whose they are, and what does not belong together is not opened.
 */
import { openStore, PoolRefusedError, type Store } from '@alkblobs/core'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'
import { clientOf, freshDatabase, sharedServer, startServer, type TestDatabase } from '@alkblobs/testkit'
import { expect, it } from 'vitest'
import { atEnd, chunksOf, contentOf, databaseOf, endOf, holds, MIB, onServer, sessionsWhere } from './pools.js'

const SMALL = contentOf('small', 100)
const LARGE = contentOf('large', 3 * MIB)

async function open(kv: TestDatabase, large: TestDatabase): Promise<Store> {
  const store = await openStore({
    kv: postgres({ url: kv.url }),
    large: pglo({ url: large.url }),
    threshold: 1_000,
    windowDelayMs: 0,
    trashDelayMs: 0
  })
  atEnd(() => store.close().catch(() => undefined))
  return store
}

/** A pool with one small and one large blob, whose store is closed. */
async function filled(kv: TestDatabase, large: TestDatabase) {
  await using store = await open(kv, large)
  const [one, other] = [await store.put(SMALL), await store.put(chunksOf(LARGE))]
  await Promise.all([one.release(), other.release()])
  return { small: one.key, large: other.key }
}

/** Another database with everything that is in this one, as a restored dump has. Nobody may be in the original. */
async function copyOf(original: TestDatabase): Promise<TestDatabase> {
  const copy = await freshDatabase()
  atEnd(() => copy.drop())
  const outside = clientOf(await sharedServer())
  await outside.query('SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity WHERE datname IN ($1, $2)', [
    original.database,
    copy.database
  ])
  await outside.query(`DROP DATABASE ${copy.database}`)
  await outside.query(`CREATE DATABASE ${copy.database} TEMPLATE ${original.database}`)
  await outside.close()
  return copy
}

const objectsIn = async ({ query }: TestDatabase) =>
  (await query<{ n: number }>('SELECT count(*)::int AS n FROM pg_largeobject_metadata'))[0]?.n

/** Why a pair, or what is asked of it, is refused. */
const refusal = async (opening: Promise<unknown>) => {
  const error = await opening.then(
    () => undefined,
    error => error
  )
  return error instanceof PoolRefusedError ? error.reason : error
}

onServer('two servers', () => {
  it('keep one pool, and each failure is of the one that is away', { timeout: 60_000 }, async () => {
    const far = await startServer()
    atEnd(() => far.release())
    const [kv, bodies] = [await databaseOf(), await databaseOf(far)]
    expect(kv.port).not.toBe(bodies.port)
    const keys = await filled(kv, bodies)
    const store = await open(kv, bodies)
    store.protect({ name: 'documents', live: () => [keys.small, keys.large] })
    const dead = await store.put(contentOf('dead', 5_000))
    await dead.release()
    expect(await store.sweep()).toMatchObject({ candidatesStaged: 1 })
    await far.stop()
    expect(await holds(store, keys.small, SMALL)).toBe(true)
    expect(await store.stat(keys.large)).toMatchObject({ tier: 'large', length: LARGE.length })
    expect((await endOf(holds(store, keys.large, LARGE))).how).toBe('transient')
    expect((await endOf(store.put(contentOf('not now', 5_000)))).how).toBe('transient')
    // The entry goes, its body waits for its server.
    expect(await store.sweep()).toMatchObject({ deleted: 1, bytesDeleted: 0, failed: [{ key: dead.key }] })
    await far.start()
    expect(await objectsIn(bodies)).toBe(2)
    await kv.query(`UPDATE alkblobs.trash SET not_before = 'epoch'; UPDATE alkblobs.stages SET expires_at = 'epoch'`)
    expect(await store.sweep()).toMatchObject({ bytesDeleted: 5_000, failed: [] })
    expect([await objectsIn(kv), await objectsIn(bodies)]).toEqual([0, 1])
    expect(await holds(store, keys.large, LARGE)).toBe(true)
    expect(await store.verify()).toMatchObject({ clean: true, entries: 2 })
  })
})

onServer('a pool that was copied', () => {
  it('with its bodies is a pool of its own, and what is done to it is not done to the original', async () => {
    const original = await databaseOf()
    const keys = await filled(original, original)
    const copy = await copyOf(original)
    const store = await open(copy, copy)
    expect(await store.verify()).toMatchObject({ clean: true, entries: 2 })
    store.protect({ name: 'nothing', live: () => [] })
    // Found in another database, it removes nothing until somebody says what it is.
    expect(await refusal(store.sweep())).toBe('moved')
    await store.fork({ bodies: 'copied' })
    for (const deleted of [0, 2]) expect(await store.sweep()).toMatchObject({ deleted, failed: [] })
    expect([await objectsIn(copy), await objectsIn(original)]).toEqual([0, 1])
    const first = await open(original, original)
    expect([await holds(first, keys.small, SMALL), await holds(first, keys.large, LARGE)]).toEqual([true, true])
  })

  it('is not opened over bodies of another pool, nor another pool over its bodies', async () => {
    const [one, other] = [await databaseOf(), await databaseOf()]
    await filled(one, one)
    await filled(other, other)
    expect(await refusal(open(one, other))).toBe('media')
    expect(await refusal(open(other, one))).toBe('media')
    // A catalog that is empty, beside bodies that have an owner.
    expect(await refusal(open(await databaseOf(), one))).toBe('media')
    await expect.poll(() => sessionsWhere({ db: one })).toBe(0)
  })

  it('without its bodies is not opened, so that nothing of it is taken for lost', async () => {
    const original = await databaseOf()
    const keys = await filled(original, original)
    const copy = await copyOf(original)
    // A dump of the catalog's schema alone.
    await copy.query(`SELECT lo_unlink(loid) FROM alkblobs_pglo.lo_entries; DROP SCHEMA alkblobs_pglo CASCADE`)
    expect(await refusal(open(copy, copy))).toBe('media')
    expect(await refusal(open(original, await databaseOf()))).toBe('media')
    expect(await copy.query('SELECT count(*)::int AS n FROM alkblobs.entries')).toEqual([{ n: 2 }])
    // Beside the original's bodies, which are those of its pool, it has everything.
    const store = await open(copy, original)
    expect(await holds(store, keys.large, LARGE)).toBe(true)
  })

  it('with the rows of its bodies and no objects tells what is missing, and a put puts it back', async () => {
    const original = await databaseOf()
    const keys = await filled(original, original)
    const copy = await copyOf(original)
    await copy.query('SELECT lo_unlink(loid) FROM alkblobs_pglo.lo_entries')
    const store = await open(copy, copy)
    expect(await store.verify()).toMatchObject({ clean: false, dangling: [{ key: keys.large }], corrupt: [] })
    await expect(holds(store, keys.large, LARGE)).rejects.toMatchObject({ code: 'ERR_BLOB_CORRUPT' })
    const receipt = await store.put(chunksOf(LARGE))
    expect(await holds(store, receipt.key, LARGE)).toBe(true)
    await receipt.release()
    await store.acknowledgeMove()
    await store.maintain({ scan: true })
    expect(await store.verify()).toMatchObject({ clean: true, entries: 2 })
  })

  it('whose claim was lost says so, and is neither claimed anew nor emptied', async () => {
    const db = await databaseOf()
    await filled(db, db)
    const claim = await db.query<{ pool_id: string }>('DELETE FROM alkblobs_pglo.lo_claim RETURNING pool_id')
    expect(claim).toHaveLength(1)
    expect(await refusal(open(db, db))).toBe('foreign')
    expect(await objectsIn(db)).toBe(1)
  })
})
