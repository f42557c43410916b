// Whose bodies these are: the claim, its exclusive form, and the rights a role needs.
import type { Claim, PoolId } from '@alkblobs/core/engine'
import { freshRole } from '@alkblobs/testkit'
import { expect, it } from 'vitest'
import {
  atEnd,
  call,
  claimed,
  database,
  exclusive,
  failure,
  holder,
  keyOf,
  newStage,
  objects,
  onServer,
  open,
  pattern,
  putBody,
  readRange,
  shared,
  terminate
} from './support.js'

onServer('a claim', () => {
  it('is made once by ten stores that come at the same moment', async () => {
    const db = await database()
    const stores = await Promise.all(Array.from({ length: 10 }, () => open(db, { poolMax: 2 })))
    const wanted = stores.map((_, n): Claim => ({ poolId: `pool-${n}` as PoolId, mode: 'shared' }))
    const inForce = await Promise.all(stores.map(({ bodies }, n) => bodies.claim(wanted[n] as Claim, call)))
    expect(new Set(inForce.map(claim => JSON.stringify(claim))).size).toBe(1)
    expect(await stores[0]?.bodies.claimed(call)).toEqual(inForce[0])
  })

  it.each(['transient'])('that went away makes everything %s, and nothing gone', async kind => {
    const db = await database()
    const { engine, bodies } = await claimed(db)
    const locator = await putBody(bodies, [pattern(10)])
    const nobody = `lo.${newStage()}` as typeof locator
    await db.query('CREATE TABLE kept AS SELECT * FROM lo.lo_claim; DELETE FROM lo.lo_claim')
    for (const refused of [
      () => bodies.length(nobody, call),
      () => readRange(bodies, nobody),
      () => readRange(bodies, locator),
      () => bodies.scan(undefined, 9, call),
      () => putBody(bodies, [pattern(10)])
    ]) {
      expect(await failure(engine, refused())).toBe(kind)
    }
    expect(engine.classify((await bodies.drop([locator], call))[0]?.error)).toBe(kind)
    expect(await failure(engine, bodies.claimed(call))).toBe('foreign')
    await db.query("INSERT INTO lo.lo_claim SELECT * FROM kept; UPDATE lo.lo_claim SET pool_id = 'another'")
    expect(await failure(engine, bodies.length(nobody, call))).toBe(kind)
    await db.query("UPDATE lo.lo_claim SET pool_id = 'pool-1'")
    expect(await readRange(bodies, locator)).toEqual(pattern(10))
    await db.query('ALTER SCHEMA lo RENAME TO away')
    expect(await failure(engine, bodies.length(nobody, call))).toBe(kind)
    expect(await failure(engine, putBody(bodies, [pattern(10)]))).toBe(kind)
    await db.query('ALTER SCHEMA away RENAME TO lo')
    expect(await objects(db)).toBe(1)
  })

  it('of another make or a later version is refused at open', async () => {
    const db = await database()
    await db.query('CREATE SCHEMA lo; CREATE TABLE lo.lo_entries (id int)')
    await expect(open(db)).rejects.toMatchObject({ code: 'foreign' })
    await db.query(
      'DROP TABLE lo.lo_entries; CREATE TABLE lo.lo_claim (format integer); INSERT INTO lo.lo_claim VALUES (2)'
    )
    await expect(open(db)).rejects.toMatchObject({ code: 'newer' })
    await db.query('DROP TABLE lo.lo_claim')
    const { engine, bodies } = await claimed(db)
    await db.query('UPDATE lo.lo_claim SET format = 2')
    expect(await failure(engine, bodies.claimed(call))).toBe('newer')
  })

  it('is in a schema of any name', async () => {
    const db = await database()
    const schema = `O'Brien "x" %s \\ é`
    const { bodies } = await claimed(db, { schema })
    const locator = await putBody(bodies, [pattern(10)])
    expect(await readRange(bodies, locator)).toEqual(pattern(10))
    await bodies.drop([locator], call)
  })
})

onServer('a claim that is taken over (BODY-CLAIM-4)', () => {
  const forked: Claim = { poolId: 'pool-2' as PoolId, mode: 'shared' }

  it('passes from the pool named, in one step, and from no other', async () => {
    const db = await database()
    const first = await claimed(db)
    const locator = await putBody(first.bodies, [pattern(10)])
    const { bodies } = await open(db)
    expect(await bodies.reclaim?.('pool-3' as PoolId, forked, call)).toBe(false)
    expect(await bodies.claimed(call)).toEqual(shared)
    const stores = await Promise.all(Array.from({ length: 5 }, () => open(db, { poolMax: 2 })))
    const taken = await Promise.all(
      stores.map((store, n) =>
        store.bodies.reclaim?.(shared.poolId, { ...forked, poolId: `pool-2-${n}` as PoolId }, call)
      )
    )
    expect(taken.filter(Boolean).length).toBe(1)
    const winner = stores[taken.indexOf(true)]
    const inForce = await bodies.claimed(call)
    expect(inForce?.poolId).toBe(`pool-2-${taken.indexOf(true)}`)
    expect(await winner?.bodies.claim(inForce as Claim, call)).toEqual(inForce)
    expect(winner && (await readRange(winner.bodies, locator))).toEqual(pattern(10))
  })

  it('ends the work of those who hold the old one, and nothing of theirs is dropped or made', async () => {
    const db = await database()
    const { engine, bodies } = await claimed(db)
    const locator = await putBody(bodies, [pattern(10)])
    const writer = await bodies.create(newStage(), {}, call)
    await writer.write(pattern(10))
    const other = await open(db)
    expect(await other.bodies.reclaim?.(shared.poolId, forked, call)).toBe(true)
    await other.bodies.claim(forked, call)
    expect(await failure(engine, putBody(bodies, [pattern(11)]))).toBe('transient')
    expect(engine.classify((await bodies.drop([locator], call))[0]?.error)).toBe('transient')
    await writer.discard().catch(() => undefined)
    expect(await readRange(other.bodies, locator)).toEqual(pattern(10))
  })

  it('is none where nothing was ever claimed', async () => {
    const db = await database()
    const { engine, bodies } = await open(db)
    expect(await failure(engine, bodies.reclaim?.(shared.poolId, forked, call) ?? Promise.resolve())).toBe('transient')
    expect(await objects(db)).toBe(0)
  })
})

onServer('an exclusive claim', () => {
  it('is held by one store at a time, until it closes', async () => {
    const db = await database()
    const first = await open(db)
    const second = await open(db)
    expect(await first.bodies.claim(exclusive, call)).toEqual(exclusive)
    expect(await first.bodies.claim(exclusive, call)).toEqual(exclusive)
    expect(await second.bodies.claim(exclusive, call)).toBe('held')
    expect(await second.bodies.claim(shared, call)).toEqual(exclusive)
    const locator = await putBody(first.bodies, [pattern(2_000_000)])
    await first.engine.close()
    expect(await second.bodies.claim(exclusive, call)).toEqual(exclusive)
    expect(await second.bodies.drop([locator], call)).toEqual([{ what: locator }])
  })

  it('whose session was lost is taken again, unless somebody else had it meanwhile', async () => {
    const db = await database()
    const first = await open(db)
    await first.bodies.claim(exclusive, call)
    await terminate(db, (await holder(db)) as number)
    // The lock is taken by the first write after the end of the session has arrived here.
    let locator = await putBody(first.bodies, [pattern(10)])
    while ((await holder(db)) === undefined) {
      await first.bodies.drop([locator], call)
      locator = await putBody(first.bodies, [pattern(10)])
    }
    await terminate(db, (await holder(db)) as number)
    const second = await open(db)
    expect(await second.bodies.claim(exclusive, call)).toEqual(exclusive)
    await second.engine.close()
    expect(await failure(first.engine, putBody(first.bodies, [pattern(10)]))).toBe('conflict')
    expect(first.engine.classify((await first.bodies.drop([locator], call))[0]?.error)).toBe('conflict')
    expect(await readRange(first.bodies, locator)).toEqual(pattern(10))
  })

  it('that was lost without notice commits nothing', async () => {
    const db = await database()
    const { engine, bodies } = await open(db)
    await bodies.claim(exclusive, call)
    const writers = await Promise.all([1, 2].map(() => bodies.create(newStage(), {}, call)))
    await writers[0]?.write(pattern(10))
    await writers[1]?.write(pattern(2_000_000))
    const locator = await putBody(bodies, [pattern(10)])
    await db.query('UPDATE lo.lo_claim SET fence = fence + 1')
    for (const writer of writers) expect(await failure(engine, writer.seal(keyOf(pattern(1))))).toBe('conflict')
    expect(engine.classify((await bodies.drop([locator], call))[0]?.error)).toBe('conflict')
    expect(await objects(db)).toBe(1)
  })
})

onServer('rights', () => {
  it('that are missing are named at open', async () => {
    const db = await database()
    const role = await freshRole(db)
    atEnd(() => role.drop())
    const { host, port, database: name } = db
    const url = `postgres://${role.name}:${role.password}@${host}:${port}/${name}`
    const grant = (text: string) => db.query(text.replaceAll('ROLE', role.name))
    const refused = (what: string) =>
      expect(open({ url })).rejects.toMatchObject({ code: 'denied', message: expect.stringContaining(what) })
    await refused('CREATE on the database')
    await grant('CREATE SCHEMA lo')
    await refused('USAGE on the schema')
    await grant('GRANT USAGE ON SCHEMA lo TO ROLE')
    await refused('CREATE on the schema')
    await grant('GRANT CREATE ON SCHEMA lo TO ROLE')
    const own = await claimed({ url })
    const locator = await putBody(own.bodies, [pattern(10)])
    expect(await readRange(own.bodies, locator)).toEqual(pattern(10))
    await grant('REVOKE EXECUTE ON FUNCTION lo_put(oid, bigint, bytea) FROM PUBLIC')
    await refused('EXECUTE on lo_put')
    await grant('GRANT EXECUTE ON FUNCTION lo_put(oid, bigint, bytea) TO ROLE')

    const other = await freshRole(db)
    atEnd(() => other.drop())
    const otherUrl = `postgres://${other.name}:${other.password}@${host}:${port}/${name}`
    await db.query(
      `GRANT USAGE ON SCHEMA lo TO ${other.name}; GRANT EXECUTE ON FUNCTION lo_put(oid, bigint, bytea) TO ${other.name}`
    )
    await expect(open({ url: otherUrl })).rejects.toMatchObject({ message: expect.stringContaining('DELETE on') })
    await db.query(`GRANT ALL ON ALL TABLES IN SCHEMA lo TO ${other.name}`)
    await expect(open({ url: otherUrl })).rejects.toMatchObject({
      message: expect.stringContaining('owns the large objects')
    })
    await db.query(`GRANT ${role.name} TO ${other.name}`)
    const member = await open({ url: otherUrl })
    expect(await readRange(member.bodies, locator)).toEqual(pattern(10))
    await own.bodies.drop([locator], call)
  })
})
