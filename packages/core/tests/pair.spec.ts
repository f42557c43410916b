/** Two catalogs as one: which of them a publication, a pin, a renewal and a release go to, and which is asked first. */
import { beforeEach, describe, expect, it } from 'vitest'
import type { BodyStore, Call, Catalog, Engine, Locator, Owner, Publication, StageId } from '../src/engine.js'
import { formatKey } from '../src/key.js'
import { pairedEngine } from '../src/pair/index.js'
import { Scripted } from './scripted-engine.js'

const call: Call = { deadlineMs: Number.POSITIVE_INFINITY }
const context = { algorithm: 'blake3', lockTimeoutMs: 1, connectTimeoutMs: 1 } as const
const TTL_MS = 1_000

let near: Scripted
let far: Scripted
let pair: Catalog
let bodies: BodyStore

beforeEach(async () => {
  near = new Scripted()
  far = new Scripted()
  const opened = [near.kv.open(context), far.kv.open(context), far.large.open(context)]
  const [one, other, large] = (await Promise.all(opened)) as [Engine, Engine, Engine]
  bodies = large.bodies as BodyStore
  pair = pairedEngine(one, other, { near: one.catalog as Catalog, far: other.catalog as Catalog, bodies }).catalog
})

const key = (n: number) => formatKey('blake3', Buffer.alloc(32, n))
const row = (generation = 1) => ({ owner: 'me' as Owner, generation })
const stage = (n: number) => `stage ${n}` as StageId
const locator = (n: number) => `body ${n}` as Locator

function item(n: number, bytes: Publication['bytes'], more: Partial<Publication> = {}): Publication {
  return { key: key(n), length: 3, bytes, pin: { row: row(), ttlMs: TTL_MS }, trashDelayMs: 0, ...more }
}
const inline = { kind: 'inline', body: Buffer.from('abc') } as const
const none = { kind: 'none' } as const
const staged = (n: number) => ({ kind: 'staged', stage: stage(n), locator: locator(n) }) as const

/** A body of that stage, written and sealed. */
async function sealed(n: number, content: string): Promise<Publication['bytes']> {
  await pair.stage([{ id: stage(n), ttlMs: TTL_MS }], call)
  const writer = await bodies.create(stage(n), {}, call)
  await writer.write(Buffer.from(content))
  return { kind: 'staged', stage: stage(n), locator: await writer.seal(key(n)) }
}

async function publish(...items: readonly Publication[]) {
  return (await pair.publish(items, call)).map(each => each.outcome)
}
async function makeNear(n: number): Promise<void> {
  expect(await publish(item(n, inline))).toEqual(['created'])
}
async function makeFar(n: number): Promise<void> {
  await pair.stage([{ id: stage(n), ttlMs: TTL_MS }], call)
  expect(await publish(item(n, staged(n)))).toEqual(['created'])
}
/** Forgets who is pinned, and what was asked so far. */
function anew(): void {
  for (const side of [near, far]) {
    side.pins.clear()
    side.steps.length = 0
    side.given.length = 0
  }
}
const counts = () => ({
  near: { entries: near.entries.size, pins: near.pins.size },
  far: { entries: far.entries.size, pins: far.pins.size }
})

describe('a publication', () => {
  it('of bytes at hand makes its entry in memory', async () => {
    await makeNear(1)
    expect(counts()).toEqual({ near: { entries: 1, pins: 1 }, far: { entries: 0, pins: 0 } })
    expect(near.entries.get(key(1))?.body).toEqual(new Uint8Array(Buffer.from('abc')))
  })

  it('of a staged body makes its entry beside the bodies, and its stage ends there', async () => {
    await makeFar(1)
    expect(counts()).toEqual({ near: { entries: 0, pins: 0 }, far: { entries: 1, pins: 1 } })
    expect(far.stages.size).toBe(0)
    expect(near.count('publish'), 'memory has no such entry, so it is not asked').toBe(0)
  })

  it('finds what memory has, whatever it brings, and goes no further', async () => {
    await makeNear(1)
    await pair.stage([{ id: stage(9), ttlMs: TTL_MS }], call)
    for (const bytes of [inline, none, staged(9)]) {
      anew()
      expect(await publish(item(1, bytes)), bytes.kind).toEqual(['existed'])
      expect(counts()).toEqual({ near: { entries: 1, pins: 1 }, far: { entries: 0, pins: 0 } })
      expect(far.steps).toEqual([])
    }
    expect(far.stages.has(stage(9)), 'the stage is still its writer’s').toBe(true)
  })

  it('finds what lies among the large ones, whatever it brings, and makes nothing in memory', async () => {
    await makeFar(1)
    await pair.stage([{ id: stage(9), ttlMs: TTL_MS }], call)
    for (const bytes of [inline, none, staged(9)]) {
      anew()
      expect(await publish(item(1, bytes)), bytes.kind).toEqual(['existed'])
      expect(counts()).toEqual({ near: { entries: 0, pins: 0 }, far: { entries: 1, pins: 1 } })
      expect(near.count('publish')).toBe(0)
    }
  })

  it('without bytes of what neither has is absent, and protects nothing', async () => {
    expect(await publish(item(1, none))).toEqual(['absent'])
    expect(counts()).toEqual({ near: { entries: 0, pins: 0 }, far: { entries: 0, pins: 0 } })
  })

  it('goes on to the other where an entry of memory went after the look at it', async () => {
    await makeFar(1)
    for (const bytes of [none, inline]) {
      anew()
      near.lie('find', () => [{ key: key(1), length: 3, place: { tier: 'kv', length: 3 } }])
      near.lie('publish', () => [{ outcome: 'absent' }])
      expect(await publish(item(1, bytes)), bytes.kind).toEqual(['existed'])
      expect([near.count('publish'), far.pins.size]).toEqual([1, 1])
    }
  })

  it('that heals a large one goes where that lies, with its bytes', async () => {
    await makeFar(1)
    anew()
    const healing = { tier: 'large', locator: locator(1) } as const
    expect(await publish(item(1, inline, { healing }))).toEqual(['healed'])
    expect(far.entries.get(key(1))?.body).toEqual(new Uint8Array(Buffer.from('abc')))
    expect([...far.trash.keys()]).toEqual([locator(1)])
    expect(counts().near).toEqual({ entries: 0, pins: 0 })
  })

  it('that heals one in memory replaces it there', async () => {
    await makeNear(1)
    const healing = { tier: 'kv', length: 3 } as const
    expect(await publish(item(1, inline, { healing }))).toEqual(['healed'])
    expect(far.entries.size).toBe(0)
  })

  it('that heals one in memory from a staged body leaves the stage its writer’s', async () => {
    await makeNear(1)
    const bytes = await sealed(9, 'xyz')
    const healing = { tier: 'kv', length: 3 } as const
    expect(await publish(item(1, bytes, { healing }))).toEqual(['healed'])
    expect(near.entries.get(key(1))?.body).toEqual(new Uint8Array(Buffer.from('xyz')))
    expect(counts()).toEqual({ near: { entries: 1, pins: 1 }, far: { entries: 0, pins: 0 } })
    expect(far.stages.has(stage(9))).toBe(true)
  })

  it('that heals one in memory makes nothing of a staged body that is too short', async () => {
    await makeNear(1)
    const bytes = await sealed(9, 'xy')
    const healing = { tier: 'kv', length: 3 } as const
    await expect(publish(item(1, bytes, { healing }))).rejects.toMatchObject({ code: 'corrupt' })
    expect(near.entries.get(key(1))?.body).toEqual(new Uint8Array(Buffer.from('abc')))
  })

  it('that heals one in memory from a body that went with its stage says that the stage is lost', async () => {
    await makeNear(1)
    const bytes = await sealed(9, 'xyz')
    const healing = { tier: 'kv', length: 3 } as const
    far.bodies.clear()
    await expect(publish(item(1, bytes, { healing }))).rejects.toMatchObject({ code: 'gone' })
    await pair.unstage([stage(9)], call)
    expect(await publish(item(1, bytes, { healing }))).toEqual(['stage-lost'])
    expect(near.entries.get(key(1))?.body).toEqual(new Uint8Array(Buffer.from('abc')))
  })

  it('of bytes at hand that heals in memory asks the other without its healing', async () => {
    const healing = { tier: 'kv', length: 3 } as const
    expect(await publish(item(1, inline, { healing }))).toEqual(['created'])
    expect(far.given.filter(({ step }) => step === 'publish').map(({ args }) => args[0])).toEqual([[item(1, none)]])
  })

  it('of several has its outcomes in their order', async () => {
    await makeFar(2)
    await makeNear(3)
    expect(await publish(item(1, inline), item(2, inline), item(3, inline), item(4, none))).toEqual([
      ...['created', 'existed', 'existed'],
      'absent'
    ])
  })
})

describe('a pin', () => {
  it('is kept by whoever has the entry, memory asked first; in order, and absent where neither has it', async () => {
    await makeNear(1)
    await makeFar(2)
    anew()
    const request = (n: number) => ({ key: key(n), pin: row(7), ttlMs: TTL_MS })
    const found = await pair.pin([request(2), request(3), request(1)], call)
    expect(found.map(entry => entry?.key)).toEqual([key(2), undefined, key(1)])
    expect([[...near.pins.keys()], [...far.pins.keys()]]).toEqual([[`${key(1)} me`], [`${key(2)} me`]])
    const asked = far.given.filter(({ step }) => step === 'pin').flatMap(({ args }) => args[0] as { key: string }[])
    expect(asked.map(each => each.key).sort()).toEqual([key(2), key(3)].sort())
  })

  it('is renewed by whoever has its row; what neither finds is lost', async () => {
    await makeNear(1)
    await makeFar(2)
    const ids = [1, 2, 3].map(n => ({ key: key(n), pin: row() }))
    const terms = { pinTtlMs: 5_000, stageTtlMs: TTL_MS, revive: false }
    await pair.stage([{ id: stage(1), ttlMs: TTL_MS }], call)
    anew()
    near.pins.set(`${key(1)} me`, { generation: 1, expiresAt: TTL_MS })
    far.pins.set(`${key(2)} me`, { generation: 1, expiresAt: TTL_MS })
    const lost = await pair.renew({ pins: ids, stages: [stage(1), stage(2)], ...terms }, call)
    expect(lost).toEqual({ pins: [ids[2]], stages: [stage(2)] })
    expect([near, far].map(side => [...side.pins.values()].map(({ expiresAt }) => expiresAt))).toEqual([
      [5_000],
      [5_000]
    ])
    expect(near.given.map(({ args }) => args[0])).toEqual([{ pins: ids, stages: [], ...terms }])
    expect(far.given.map(({ args }) => args[0])).toEqual([
      { pins: ids.slice(1), stages: [stage(1), stage(2)], ...terms }
    ])
  })

  it('is renewed without a word to the other where memory has every row and no stage is there', async () => {
    await makeNear(1)
    anew()
    near.pins.set(`${key(1)} me`, { generation: 1, expiresAt: TTL_MS })
    const pins = [{ key: key(1), pin: row() }]
    const terms = { pinTtlMs: 5_000, stageTtlMs: TTL_MS, revive: false }
    expect(await pair.renew({ pins, stages: [], ...terms }, call)).toEqual({ pins: [], stages: [] })
    expect(far.steps).toEqual([])
    expect(await pair.renew({ pins: [], stages: [stage(1)], ...terms }, call)).toEqual({ pins: [], stages: [stage(1)] })
    expect(far.steps).toEqual(['renew'])
  })

  it('is released in both', async () => {
    await makeNear(1)
    await makeFar(2)
    await pair.release(
      [1, 2].map(n => ({ key: key(n), pin: row() })),
      call
    )
    expect([near.pins.size, far.pins.size]).toEqual([0, 0])
  })
})
