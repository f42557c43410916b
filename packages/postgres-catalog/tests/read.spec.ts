import { randomBytes } from 'node:crypto'
import { expect, test } from 'vitest'
import {
  call,
  describeServer,
  eventually,
  inline,
  keyOf,
  locatorOf,
  openPool,
  sooner,
  staged,
  stageOf,
  stranger
} from './fixture.js'

const HOUR = 3_600_000

/** A pool with entries 0 to `count - 1` of bodies of these lengths, in turn. */
async function filled(count: number, lengths: readonly number[] = [100], lockTimeoutMs = 2_000) {
  const pool = await openPool({ lockTimeoutMs })
  const bodies = Array.from({ length: count }, (_, n) => randomBytes(lengths[n % lengths.length] as number))
  await pool.catalog.publish(
    bodies.map((body, n) => inline(n, body)),
    call()
  )
  return { ...pool, bodies }
}

describeServer('reads that are asked together', () => {
  test('answer each its own: bodies of every length, locators, and nothing', async () => {
    const { catalog, bodies } = await filled(60, [0, 1, 100, 16_384, 300_000])
    await catalog.stage([{ id: stageOf(99), ttlMs: HOUR }], call())
    await catalog.publish([staged(99)], call())
    const asked = [...bodies.keys(), 99, 98]
    const found = await Promise.all(asked.map(n => catalog.read(keyOf(n), call())))
    for (const [n, body] of bodies.entries()) {
      expect(found[n]?.entry).toEqual({
        key: keyOf(n),
        length: body.length,
        place: { tier: 'kv', length: body.length }
      })
      expect(Buffer.compare(found[n]?.body ?? Buffer.alloc(1), body)).toBe(0)
    }
    expect(found[60]).toEqual({
      entry: { key: keyOf(99), length: 1_000_000, place: { tier: 'large', locator: locatorOf(99) } }
    })
    expect(found[61]).toBeUndefined()
  })

  test('of one key have memory of their own, and none shares it with a neighbour', async () => {
    const { catalog, bodies } = await filled(20, [1_000])
    const asked = [...bodies.keys(), 0, 0, 1]
    const found = await Promise.all(asked.map(n => catalog.read(keyOf(n), call())))
    for (const n of bodies.keys()) expect(found[n]?.body?.buffer.byteLength).toBe(1_000)
    found[0]?.body?.fill(0)
    found[20]?.body?.fill(1)
    for (const [i, n] of asked.entries()) {
      if (i === 0 || i === 20) continue
      expect(Buffer.compare(found[i]?.body ?? Buffer.alloc(0), bodies[n] as Buffer)).toBe(0)
    }
  })

  test('end each with its own signal or deadline, while the others are answered', async () => {
    const { at, catalog, bodies } = await filled(8)
    const other = await stranger(at)
    await other.begin()
    await other.say('LOCK TABLE $.entries IN ACCESS EXCLUSIVE MODE')
    const leaving = new AbortController()
    const left = catalog.read(keyOf(0), call(10_000, leaving.signal))
    const late = catalog.read(keyOf(1), call(300))
    const others = [2, 3, 4].map(n => catalog.read(keyOf(n), call()))
    await other.blocks()
    leaving.abort(new Error('no more'))
    await expect(sooner(100, left)).rejects.toThrow('no more')
    await expect(late).rejects.toThrow('deadline')
    await other.rollback()
    const found = await Promise.all(others)
    expect(found.map(each => each?.body?.length)).toEqual([100, 100, 100])
    expect(Buffer.compare(found[0]?.body ?? Buffer.alloc(0), bodies[2] as Buffer)).toBe(0)
  })

  test('that nobody waits for any more are given up at the server', async () => {
    const { at, catalog } = await filled(4, [100], 60_000)
    const other = await stranger(at)
    await other.begin()
    await other.say('LOCK TABLE $.entries IN ACCESS EXCLUSIVE MODE')
    const leaving = new AbortController()
    const reads = [0, 1, 2].map(n => catalog.read(keyOf(n), call(60_000, leaving.signal)))
    await other.blocks()
    leaving.abort(new Error('no more'))
    for (const read of reads) await expect(read).rejects.toThrow('no more')
    await eventually('nobody waits for the lock', async () => {
      const waiting = 'SELECT 1 FROM pg_stat_activity WHERE $1::int = ANY (pg_blocking_pids(pid))'
      return (await at.query(waiting, [other.pid])).length === 0
    })
    await other.rollback()
    expect((await catalog.read(keyOf(0), call()))?.entry.length).toBe(100)
  })
})
