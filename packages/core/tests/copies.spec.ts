/** Copies of a pool: found elsewhere it removes nothing, until it is acknowledged or forked; a backup holds everything still. */
import { describe, expect, it, onTestFinished } from 'vitest'
import type { Claim, PoolId, PoolRecord } from '../src/engine.js'
import { openStore } from '../src/index.js'
import { bytes, opened, rejection, THRESHOLD } from './opened.js'
import { Scripted, serverAt } from './scripted-engine.js'

const source = { name: 'app', live: () => [] }
const LARGE = bytes(100)

async function pool(options: { kvOnly?: boolean; engine?: Scripted; durability?: 'process' } = {}) {
  const engine = options.engine ?? new Scripted({ server: { kv: serverAt('one', '1', 1) } })
  const { store } = await opened({ kvOnly: false, ...options, engine, windowDelayMs: 0 })
  store.protect(source)
  return { store, engine }
}

/** The media as a copy of them would be: records and bodies of their own, under the names of the original. */
function copyOf(engine: Scripted, server = serverAt('one', '2', 1)): Scripted {
  const copy = new Scripted({ server: { kv: server } })
  copy.record = engine.record
  copy.claim = engine.claim
  for (const [key, entry] of engine.entries) copy.entries.set(key, entry)
  for (const [locator, body] of engine.bodies) copy.bodies.set(locator, body)
  for (const [what, trashed] of engine.trash) copy.trash.set(what, trashed)
  return copy
}

const moved = { name: 'PoolRefusedError', code: 'ERR_BLOB_POOL_REFUSED', reason: 'moved' }

describe('a pool found elsewhere', () => {
  it.each([
    ['another server', serverAt('two', '1', 1), /another server/],
    ['another database', serverAt('one', '2', 1), /another database/],
    ['a later timeline', serverAt('one', '1', 2), /timeline 1, now 2/]
  ])('on %s is read and written, and neither swept nor maintained', async (_, server, message) => {
    const { store, engine } = await pool()
    const { key, release } = await store.put(LARGE).then(receipt => ({ key: receipt.key, release: receipt.pin }))
    await release?.release()
    await store.close()
    engine.server = { kv: server }
    const found = await opened({ engine })
    found.store.protect(source)
    expect(await (await found.store.get(key))?.bytes()).toEqual(LARGE)
    await (await found.store.put('more')).release()
    const refused = await rejection(found.store.sweep())
    expect(refused).toMatchObject(moved)
    expect(refused.message).toMatch(message)
    expect(await rejection(found.store.maintain())).toMatchObject(moved)
    expect(await rejection(found.store.backup(() => 'copied'))).toMatchObject(moved)
    expect(engine.leased, 'a refusal holds nothing').toBe(false)
    expect([engine.entries.size, engine.bodies.size, engine.window.size]).toEqual([2, 1, 0])
  })

  it('deletes entries of its own and leaves their bodies, which may be those of the original', async () => {
    const { store, engine } = await pool()
    const receipt = await store.put(LARGE)
    await receipt.release()
    engine.server = { kv: serverAt('two') }
    expect(await store.delete(receipt.key)).toBe(true)
    expect([engine.entries.size, engine.bodies.size, engine.trash.size]).toEqual([0, 1, 1])
    await store.acknowledgeMove()
    await store.maintain()
    expect([engine.bodies.size, engine.trash.size]).toEqual([0, 0])
  })

  it('goes on where it is once that is acknowledged, and is found there by the next', async () => {
    const { store, engine } = await pool()
    await (await store.put('a')).release()
    engine.server = { kv: serverAt('one', '1', 7) }
    await store.acknowledgeMove()
    expect(engine.record?.server).toEqual(serverAt('one', '1', 7))
    expect(await store.sweep()).toMatchObject({ candidatesStaged: 1 })
    const { poolId } = engine.record as PoolRecord
    await store.acknowledgeMove()
    expect(engine.record?.poolId).toBe(poolId)
    engine.server = { kv: serverAt('one', '1', 1) }
    expect(await rejection(store.sweep())).toMatchObject(moved)
  })

  it('is asked after each time the right to remove is taken, on the server itself', async () => {
    const { store, engine } = await pool()
    await (await store.put('a')).release()
    const before = engine.count('server.identity')
    for (let time = 0; time < 3; time++) await store.maintain()
    expect(engine.count('server.identity')).toBe(before + 3)
    engine.failBefore('server.identity')
    expect(await rejection(store.maintain())).toMatchObject({ code: 'ERR_BLOB_ENGINE' })
    expect(engine.leased).toBe(false)
  })

  it('of a catalog without a server is never asked after', async () => {
    const { store, engine } = await pool({ engine: new Scripted() })
    await (await store.put('a')).release()
    expect(await store.sweep()).toMatchObject({ candidatesStaged: 1 })
    expect(engine.record).not.toHaveProperty('server')
  })

  it('whose record names no server, as those of earlier versions, is taken for itself', async () => {
    const { store, engine } = await pool()
    await (await store.put('a')).release()
    const { server: _, ...record } = engine.record as PoolRecord
    engine.record = record as PoolRecord
    expect(await store.sweep()).toMatchObject({ candidatesStaged: 1 })
  })
})

describe('fork', () => {
  it('gives a copied catalog an id of its own, and the original goes on', async () => {
    const { store, engine } = await pool({ kvOnly: true })
    const receipt = await store.put('a')
    await receipt.release()
    const copy = copyOf(engine)
    const other = await pool({ kvOnly: true, engine: copy })
    expect(await rejection(other.store.sweep())).toMatchObject(moved)
    const id = await other.store.fork()
    expect([id, copy.record?.poolId]).toEqual([copy.record?.poolId, id])
    expect(id).toMatch(/^[0-9a-f]{32}$/)
    expect(id).not.toBe(engine.record?.poolId)
    expect(copy.record).toMatchObject({ server: serverAt('one', '2', 1), bodiesClaimed: false })
    expect(await other.store.sweep()).toMatchObject({ candidatesStaged: 1 })
    expect(await other.store.sweep()).toMatchObject({ deleted: 1 })
    expect(await store.has(receipt.key)).toBe(true)
    expect(await store.sweep()).toMatchObject({ candidatesStaged: 1 })
  })

  it('with large bodies needs somebody to say that they are copied too', async () => {
    const { store, engine } = await pool()
    await (await store.put(LARGE)).release()
    const copy = copyOf(engine)
    const other = await pool({ engine: copy })
    const before = copy.record
    expect(await rejection(other.store.fork())).toMatchObject({ code: 'ERR_BLOB_POOL_REFUSED', reason: 'media' })
    expect([copy.record, copy.claim?.poolId, copy.leased]).toEqual([before, engine.record?.poolId, false])
    const id = await other.store.fork({ bodies: 'copied' })
    expect(copy.claim).toEqual({ poolId: id, mode: 'shared' })
    expect(copy.record).toMatchObject({ poolId: id, bodiesClaimed: true })
    expect(copy.record).not.toHaveProperty('forkedFrom')
    expect(engine.claim?.poolId).toBe(engine.record?.poolId)
    expect(await other.store.sweep()).toMatchObject({ candidatesStaged: 1 })
    expect(await other.store.sweep()).toMatchObject({ deleted: 1 })
    expect([copy.bodies.size, engine.bodies.size]).toEqual([0, 1])
    expect(await store.sweep()).toMatchObject({ candidatesStaged: 1 })
  })

  it('that stops before it has the bodies may be read, and neither written to nor swept: they may be the original’s', async () => {
    const { store, engine } = await pool()
    const receipt = await store.put(LARGE)
    await receipt.release()
    const copy = copyOf(engine)
    const other = await pool({ engine: copy })
    copy.failBefore('reclaim')
    await rejection(other.store.fork({ bodies: 'copied' }))
    await other.store.close()
    const half = copy.record
    expect(half).toMatchObject({ forkedFrom: engine.record?.poolId, bodiesClaimed: false })
    const next = await pool({ engine: copy })
    expect((await next.store.get(receipt.key))?.size).toBe(LARGE.length)
    const refused = {
      code: 'ERR_BLOB_POOL_REFUSED',
      reason: 'media',
      message: expect.stringMatching(/half-way.*fork\(/)
    }
    expect(await rejection(next.store.put('more'))).toMatchObject(refused)
    expect(await rejection(next.store.delete(receipt.key))).toMatchObject(refused)
    expect(await rejection(next.store.sweep())).toMatchObject(refused)
    expect(await rejection(next.store.maintain())).toMatchObject(refused)
    expect(await rejection(next.store.fork())).toMatchObject({ reason: 'media' })
    expect([copy.record, copy.claim, copy.bodies.size]).toEqual([half, engine.claim, 1])
    const id = await next.store.fork({ bodies: 'copied' })
    expect(copy.claim?.poolId).toBe(id)
    expect(copy.record).toMatchObject({ poolId: id, bodiesClaimed: true })
    expect(copy.record).not.toHaveProperty('forkedFrom')
    await (await next.store.put('more')).release()
    expect(await next.store.sweep()).toMatchObject({ candidatesStaged: 2 })
  })

  it('that stops after it has the bodies is completed by the next store that writes', async () => {
    const { store, engine } = await pool()
    await (await store.put(LARGE)).release()
    const copy = copyOf(engine)
    const other = await pool({ engine: copy })
    copy.failBefore('claim')
    await rejection(other.store.fork({ bodies: 'copied' }))
    await other.store.close()
    expect(copy.record).toMatchObject({ forkedFrom: engine.record?.poolId, bodiesClaimed: false })
    const next = await pool({ engine: copy })
    await (await next.store.put('more')).release()
    expect(copy.claim?.poolId).toBe(copy.record?.poolId)
    expect(copy.record).toMatchObject({ bodiesClaimed: true })
    expect(copy.record).not.toHaveProperty('forkedFrom')
    expect(await next.store.sweep()).toMatchObject({ candidatesStaged: 2 })
  })

  it('that stops half-way takes no empty medium for the bodies that it has yet to take over', async () => {
    const { store, engine } = await pool()
    await (await store.put(LARGE)).release()
    const copy = copyOf(engine)
    const other = await pool({ engine: copy })
    copy.failBefore('reclaim')
    await rejection(other.store.fork({ bodies: 'copied' }))
    copy.claim = undefined
    const away = { reason: 'media', message: expect.stringMatching(/away/) }
    await expect(pool({ engine: copy })).rejects.toMatchObject(away)
    expect(await rejection(other.store.put('more'))).toMatchObject(away)
    expect(await rejection(other.store.fork({ bodies: 'copied' }))).toMatchObject({ reason: 'media' })
    expect(copy.claim).toBeUndefined()
  })

  it('asks for a copy of bodies that are claimed already, though the record does not say so yet', async () => {
    const { store, engine } = await pool()
    engine.failAfter('claim')
    await rejection(store.put(LARGE))
    expect([engine.record?.bodiesClaimed, engine.claim?.poolId]).toEqual([false, engine.record?.poolId])
    const copy = copyOf(engine)
    const other = await pool({ engine: copy })
    expect(await rejection(other.store.fork())).toMatchObject({ reason: 'media' })
    expect(await other.store.fork({ bodies: 'copied' })).toBe(copy.claim?.poolId)
  })

  it('that cannot ask whose the bodies are changes nothing', async () => {
    const { store, engine } = await pool()
    await (await store.put(LARGE)).release()
    const copy = copyOf(engine)
    const other = await pool({ engine: copy })
    copy.failBefore('claimed')
    await rejection(other.store.fork({ bodies: 'copied' }))
    expect(copy.record).toEqual(engine.record)
    expect(copy.claim).toEqual(engine.claim)
  })

  it('takes over nothing but the claim of the original', async () => {
    const { store, engine } = await pool()
    await (await store.put(LARGE)).release()
    const copy = copyOf(engine)
    const other = await pool({ engine: copy })
    // Changed under the store: the folder of a third pool is mounted there now.
    const third: Claim = { poolId: 'third' as PoolId, mode: 'shared' }
    copy.claim = third
    expect(await rejection(other.store.fork({ bodies: 'copied' }))).toMatchObject({ reason: 'media' })
    expect([copy.claim, copy.record]).toEqual([third, engine.record])
    await expect(pool({ engine: copy })).rejects.toMatchObject({ reason: 'media' })
  })

  it('onto a fresh medium claims that', async () => {
    const { store, engine } = await pool({ kvOnly: true })
    await (await store.put('a')).release()
    const copy = copyOf(engine)
    const other = await pool({ engine: copy })
    const id = await other.store.fork()
    expect(copy.claim).toEqual({ poolId: id, mode: 'shared' })
    await (await other.store.put(LARGE)).release()
  })

  it('leaves no room for another fork beside it, nor for stores of the old id', async () => {
    const { store, engine } = await pool({ kvOnly: true })
    await (await store.put('a')).release()
    const copy = copyOf(engine)
    const [one, other] = [await pool({ kvOnly: true, engine: copy }), await pool({ kvOnly: true, engine: copy })]
    const ends = await Promise.allSettled([one.store.fork(), other.store.fork()])
    expect(ends.filter(({ status }) => status === 'fulfilled').length).toBe(1)
    const loser = ends[0].status === 'fulfilled' ? other : one
    expect(await rejection(loser.store.sweep())).toMatchObject({ reason: 'media' })
  })

  it('keeps settings that were changed after the store was opened', async () => {
    const { store, engine } = await pool({ kvOnly: true })
    await (await store.put('a')).release()
    const copy = copyOf(engine)
    const other = await pool({ kvOnly: true, engine: copy })
    await other.store.configure({ windowDelayMs: 5_000 })
    await other.store.fork()
    expect(copy.record).toMatchObject({ windowDelayMs: 5_000 })
    expect(await other.store.settings()).toEqual({ windowDelayMs: 5_000 })
  })

  it('is refused where there is no pool, in memory, and beside a sweep', async () => {
    const { store: virgin, engine: nothing } = await pool()
    expect(await rejection(virgin.fork())).toMatchObject({ reason: 'foreign' })
    expect(nothing.record).toBeUndefined()
    const inMemory = await pool({ kvOnly: true, engine: new Scripted({ durability: 'process', form: 'inline' }) })
    await inMemory.store.put('a')
    expect(await rejection(inMemory.store.fork())).toMatchObject({ reason: 'foreign' })
    const { store, engine } = await pool({ kvOnly: true })
    await (await store.put('a')).release()
    const gate = engine.gate('maintain')
    const sweep = store.sweep()
    await gate.reached
    expect(await rejection(store.fork())).toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'conflict' })
    gate.open()
    await sweep
  })
})

describe('backup', () => {
  it('holds the lease while the copy is made, answers what it answered, and lets go', async () => {
    const { store, engine } = await pool()
    await (await store.put('a')).release()
    const during: unknown[] = []
    const answer = await store.backup(async signal => {
      during.push(engine.leased, signal.aborted)
      during.push((await store.sweep()).aborted, (await store.maintain()).aborted)
      during.push((await store.put('beside')).created)
      return 'copied'
    })
    expect(answer).toBe('copied')
    expect(during).toEqual([true, false, 'SweeperLock', 'SweeperLock', true])
    expect(engine.leased).toBe(false)
    expect(engine.window.size).toBe(0)
  })

  it('drops nothing of what is deleted beside it, until it ends', async () => {
    const { store, engine } = await pool()
    const receipt = await store.put(LARGE)
    await receipt.release()
    await store.backup(async () => {
      expect(await store.delete(receipt.key)).toBe(true)
      expect([engine.entries.size, engine.bodies.size, engine.count('drop')]).toEqual([0, 1, 0])
    })
    await store.maintain()
    expect([engine.bodies.size, engine.trash.size]).toEqual([0, 0])
  })

  it('drops nothing of what is healed beside it, until it ends', async () => {
    const { store, engine } = await pool()
    await (await store.put(LARGE)).release()
    for (const [locator, body] of engine.bodies) engine.bodies.set(locator, { ...body, bytes: body.bytes.subarray(1) })
    await store.backup(async () => {
      await (await store.put(LARGE)).release()
      expect([engine.bodies.size, engine.count('drop')]).toEqual([2, 0])
    })
    await store.maintain()
    expect([engine.bodies.size, engine.trash.size]).toEqual([1, 0])
  })

  it('passes on what the copying threw, and lets go', async () => {
    const { store, engine } = await pool()
    const reason = new Error('no room')
    expect(await rejection(store.backup(() => Promise.reject(reason)))).toBe(reason)
    expect(
      await rejection(
        store.backup(() => {
          throw reason
        })
      )
    ).toBe(reason)
    expect(engine.leased).toBe(false)
  })

  it('that lost its right is no backup: the signal fires, and it rejects though the copying went through', async () => {
    const { store, engine } = await pool()
    let fired = false
    const made = store.backup(async signal => {
      signal.addEventListener('abort', () => {
        fired = true
      })
      engine.loseLease()
      return 'copied'
    })
    expect(await rejection(made)).toMatchObject({ code: 'ERR_BLOB_ENGINE', kind: 'conflict', operation: 'lease' })
    expect(fired).toBe(true)
  })

  it('tells of the caller’s signal and of the close of the store', async () => {
    const { store } = await pool()
    const controller = new AbortController()
    const reason = await store.backup(
      signal => {
        controller.abort('enough')
        return signal.reason as unknown
      },
      { signal: controller.signal }
    )
    expect(reason).toBe('enough')
    let closed: Promise<void> | undefined
    const seen = await store.backup(signal => {
      const fired = new Promise(resolve => signal.addEventListener('abort', () => resolve(signal.reason)))
      closed = store.close()
      return fired
    })
    expect(seen).toMatchObject({ code: 'ERR_BLOB_STORE_CLOSED' })
    await closed
  })

  it('is refused beside a sweep or another backup, and for what is no function', async () => {
    const { store, engine } = await pool()
    await (await store.put('a')).release()
    await store.backup(async () => {
      expect(await rejection(store.backup(() => {}))).toMatchObject({ kind: 'conflict' })
    })
    const gate = engine.gate('maintain')
    const sweep = store.sweep()
    await gate.reached
    expect(await rejection(store.backup(() => {}))).toMatchObject({ kind: 'conflict' })
    gate.open()
    await sweep
    expect(await rejection(store.backup('copy' as never))).toMatchObject({ code: 'ERR_BLOB_INVALID_ARGUMENT' })
  })

  it('of a pool in memory holds still too', async () => {
    const engine = new Scripted({ durability: 'process', form: 'inline' })
    const store = await openStore({ kv: engine.kv, large: engine.large, threshold: THRESHOLD })
    onTestFinished(() => store.close())
    await store.put('a')
    expect(await store.backup(() => engine.leased)).toBe(true)
  })
})
