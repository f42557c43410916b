// The clauses of the contract, asked of the engine itself: the conformance suite asks them again through the facade.
import type {
  BlobKey,
  Call,
  Catalog,
  DeleteMark,
  Engine,
  Lease,
  Locator,
  Owner,
  PoolId,
  StageId
} from '@alkblobs/core/engine'
import { formatKey, InvalidArgumentError, PROTOCOL_VERSION } from '@alkblobs/core/engine'
import { beforeEach, describe, expect, it } from 'vitest'
import { createMedium, mem } from '../src/index.js'

const call: Call = { deadlineMs: Number.POSITIVE_INFINITY }
const context = { algorithm: 'blake3', lockTimeoutMs: 1, connectTimeoutMs: 1 } as const
const record = {
  poolId: 'p' as PoolId,
  protocol: PROTOCOL_VERSION,
  algorithm: 'blake3',
  windowDelayMs: 5,
  bodiesClaimed: false
} as const

const key = (n: number): BlobKey => {
  const digest = new Uint8Array(32)
  new DataView(digest.buffer).setUint32(0, n)
  return formatKey('blake3', digest)
}
const row = (owner = 'o', generation = 1) => ({ owner: owner as Owner, generation })
const pin = (owner = 'o', generation = 1) => ({ row: row(owner, generation), ttlMs: 10 })
const stage = (n: number) => n.toString(16).padStart(32, '0') as StageId
const locator = (n: number) => `l${n}` as Locator
const inline = (text: string) => ({ kind: 'inline', body: new TextEncoder().encode(text) }) as const
const staged = (n: number) => ({ kind: 'staged', stage: stage(n), locator: locator(n) }) as const

let engine: Engine
let catalog: Catalog

beforeEach(async () => {
  engine = await mem().open(context)
  catalog = engine.catalog as Catalog
  expect(await catalog.meta.compareAndSet(undefined, record, call)).toBe(true)
})

async function put(n: number, extra: { pin?: ReturnType<typeof pin>; bytes?: ReturnType<typeof inline> } = {}) {
  const bytes = extra.bytes ?? inline(`body ${n}`)
  const [outcome] = await catalog.publish(
    [{ key: key(n), length: bytes.body.byteLength, bytes, trashDelayMs: 0, ...(extra.pin && { pin: extra.pin }) }],
    call
  )
  return outcome
}

async function putLarge(n: number, more: object = {}, stageNumber = n) {
  await catalog.stage([{ id: stage(stageNumber), ttlMs: 10_000 }], call)
  const item = { key: key(n), length: 9, bytes: staged(stageNumber), trashDelayMs: 0, ...more }
  const [outcome] = await catalog.publish([item], call)
  return outcome
}

const leased = async () => (await catalog.lease(call)) as Lease
const marked = async (n: number) => (await catalog.mark(key(n), call)) as { mark: DeleteMark }
const removeCandidate = async (n: number, lease: Lease, live = false) =>
  (await catalog.remove([{ kind: 'candidate', key: key(n), live }], 0, lease, call))[0]
const removeMarked = async (n: number, mark: DeleteMark, more: object = {}) =>
  (await catalog.remove([{ kind: 'marked', key: key(n), mark, live: false, ...more }], 0, undefined, call))[0]

describe('the medium', () => {
  it('is fresh at every opening, unless it is shared', async () => {
    const alone = mem()
    const first = await alone.open(context)
    await first.catalog?.meta.compareAndSet(undefined, record, call)
    expect(await (await alone.open(context)).catalog?.meta.read(call)).toBeUndefined()

    const shared = mem({ medium: createMedium() })
    await (await shared.open(context)).catalog?.meta.compareAndSet(undefined, record, call)
    expect(await (await shared.open(context)).catalog?.meta.read(call)).toEqual(record)
  })

  it('must come from createMedium', () => {
    expect(() => mem({ medium: {} as never })).toThrow(InvalidArgumentError)
  })

  it('sets its record only from the one expected', async () => {
    expect(await catalog.meta.compareAndSet(undefined, record, call)).toBe(false)
    expect(await catalog.meta.compareAndSet({ ...record, windowDelayMs: 6 }, record, call)).toBe(false)
    expect(await catalog.meta.compareAndSet(record, { ...record, windowDelayMs: 6 }, call)).toBe(true)
    expect((await catalog.meta.read(call))?.windowDelayMs).toBe(6)
  })

  it('keeps everything its record says, and compares all of it', async () => {
    const server = { system: '7', database: '16384', timeline: 2 }
    const full = { ...record, server, forkedFrom: 'original' as never }
    expect(await catalog.meta.compareAndSet(record, full, call)).toBe(true)
    expect(await catalog.meta.read(call)).toEqual(full)
    for (const other of [
      { ...full, server: { ...server, timeline: 3 } },
      { ...full, forkedFrom: 'another' as never },
      record
    ])
      expect(await catalog.meta.compareAndSet(other, record, call), JSON.stringify(other)).toBe(false)
    expect(await catalog.meta.compareAndSet(full, record, call)).toBe(true)
    expect(await catalog.meta.read(call)).toEqual(record)
  })

  it('begins nothing after the signal or the deadline', async () => {
    await expect(catalog.find([key(1)], { ...call, signal: AbortSignal.abort() })).rejects.toThrow('abort')
    const late = await catalog.stage([{ id: stage(1), ttlMs: 9 }], { deadlineMs: 0 }).catch(error => error)
    expect(engine.classify(late)).toBe('transient')
    expect((await catalog.usage(call)).stages).toBe(0)
  })
})

describe('entries', () => {
  it('copies in and copies out', async () => {
    const bytes = inline('abc')
    const published = put(1, { bytes })
    bytes.body.fill(0)
    await published
    const read = await catalog.read(key(1), call)
    expect(Buffer.from(read?.body ?? []).toString()).toBe('abc')
    read?.body?.fill(0)
    expect(Buffer.from((await catalog.read(key(1), call))?.body ?? []).toString()).toBe('abc')
  })

  it('keeps an empty body apart from none', async () => {
    await put(1, { bytes: inline('') })
    expect((await catalog.read(key(1), call))?.body).toHaveLength(0)
    await putLarge(2)
    expect((await catalog.read(key(2), call))?.body).toBeUndefined()
    expect(await catalog.read(key(3), call)).toBeUndefined()
    expect((await catalog.find([key(3), key(1)], call)).map(entry => entry?.length)).toEqual([undefined, 0])
  })

  it('lists in key order, each once, while entries come and go', async () => {
    for (const n of [5, 300, 1, 70_000, 2]) await put(n)
    const first = await catalog.list(undefined, 2, call)
    await put(0)
    await removeMarked(5, (await marked(5)).mark)
    await put(3)
    const rest = await catalog.list(first.at(-1)?.key, 9, call)
    expect([...first, ...rest].map(entry => entry.key)).toEqual([1, 2, 3, 300, 70_000].map(key))
    await removeMarked(3, (await marked(3)).mark)
    await put(5)
    await put(3)
    expect((await catalog.list(undefined, 9, call)).map(entry => entry.key)).toEqual(
      [0, 1, 2, 3, 5, 300, 70_000].map(key)
    )
  })

  it('lists a hundred thousand entries page by page without sorting each time', async () => {
    for (let n = 0; n < 100_000; n++) await put((n * 7919) % 100_000)
    // Processor time: what else this machine does is not counted.
    const started = process.cpuUsage()
    let listed = 0
    for (let after: BlobKey | undefined; ; ) {
      const page = await catalog.list(after, 1_000, call)
      if (page.length === 0) break
      listed += page.length
      after = page.at(-1)?.key
    }
    expect(listed).toBe(100_000)
    // A sort per page takes more than five seconds.
    const { user, system } = process.cpuUsage(started)
    expect((user + system) / 1_000).toBeLessThan(2_000)
  })
})

describe('publish', () => {
  it('creates, then finds; the first writer wins', async () => {
    expect(await put(1)).toMatchObject({ outcome: 'created', entry: { length: 6, place: { tier: 'kv', length: 6 } } })
    expect(await putLarge(1)).toMatchObject({ outcome: 'existed', entry: { place: { tier: 'kv' } } })
    expect(await catalog.staged([stage(1)], call)).toEqual([true])
    const [none] = await catalog.publish([{ key: key(2), length: 1, bytes: { kind: 'none' }, trashDelayMs: 0 }], call)
    expect(none).toEqual({ outcome: 'absent' })
  })

  it('loses a stage that expired or ended, and does nothing then', async () => {
    await catalog.stage([{ id: stage(1), ttlMs: -1 }], call)
    const item = { key: key(1), length: 9, bytes: staged(1), pin: pin(), trashDelayMs: 0 }
    expect(await catalog.publish([item], call)).toEqual([{ outcome: 'stage-lost' }])
    expect(await catalog.publish([{ ...item, bytes: staged(2) }], call)).toEqual([{ outcome: 'stage-lost' }])
    expect(await catalog.usage(call)).toMatchObject({ pins: 0, large: { entries: 0 } })
    await putLarge(3)
    expect(await catalog.staged([stage(3)], call)).toEqual([false])
  })

  it('heals only what still lies where it was found broken', async () => {
    await putLarge(1)
    const healing = { tier: 'large', locator: locator(1) } as const
    expect(await putLarge(1, { healing, trashDelayMs: 60_000 }, 2)).toMatchObject({ outcome: 'healed' })
    expect(await catalog.trash(undefined, 9, call)).toEqual([])
    expect((await catalog.usage(call)).trash).toBe(1)
    expect(await putLarge(1, { healing }, 3)).toMatchObject({
      outcome: 'existed',
      entry: { place: { locator: locator(2) } }
    })
    const healed = { tier: 'large', locator: locator(2) } as const
    expect(await putLarge(1, { healing: healed }, 4)).toMatchObject({ outcome: 'healed' })
    expect(await catalog.trash(undefined, 9, call)).toEqual([{ what: locator(2), key: key(1), length: 9, attempts: 0 }])
  })

  it('refuses a pool of a later protocol, and one that does not exist', async () => {
    await put(1)
    const { mark } = await marked(1)
    await catalog.meta.compareAndSet(record, { ...record, protocol: PROTOCOL_VERSION + 1 }, call)
    const lease = await leased()
    for (const refused of [put(2), catalog.stageCandidates(lease, [key(1)], call), removeMarked(1, mark)]) {
      expect(engine.classify(await refused.catch(error => error))).toBe('newer')
    }
    expect(await catalog.list(undefined, 9, call)).toHaveLength(1)
    catalog = (await mem().open(context)).catalog as Catalog
    expect(engine.classify(await put(1).catch(error => error))).toBe('foreign')
  })
})

describe('pins', () => {
  it('keep the highest generation, and end only by it', async () => {
    await put(1, { pin: pin('o', 5) })
    await put(1, { pin: pin('o', 3) })
    await catalog.release([{ key: key(1), pin: row('o', 4) }], call)
    expect(await catalog.mark(key(1), call)).toBe('pinned')
    await catalog.release([{ key: key(1), pin: row('o', 5) }], call)
    await catalog.release([{ key: key(1), pin: row('o', 5) }], call)
    expect(await catalog.mark(key(1), call)).toMatchObject({ entry: { key: key(1) } })
  })

  it('pin what exists and answer nothing for what does not', async () => {
    await put(1)
    const pinned = await catalog.pin(
      [2, 1].map(n => ({ key: key(n), pin: row(), ttlMs: 1 })),
      call
    )
    expect(pinned.map(entry => entry?.key)).toEqual([undefined, key(1)])
    expect((await catalog.explain(key(1), call)).pins).toEqual([{ owner: 'o', expiresInMs: Number.POSITIVE_INFINITY }])
  })

  it('renew what is there, and say what is lost', async () => {
    await put(1, { pin: pin('o', 2) })
    await catalog.stage(
      [
        { id: stage(1), ttlMs: 1_000 },
        { id: stage(2), ttlMs: -1 }
      ],
      call
    )
    const pins = [
      { key: key(1), pin: row('o', 1) },
      { key: key(1), pin: row('o', 3) },
      { key: key(2), pin: row() }
    ]
    const stages = [stage(1), stage(2), stage(3)]
    const lost = await catalog.renew({ pins, pinTtlMs: 1, stages, stageTtlMs: 9_000, revive: true }, call)
    expect(lost).toEqual({ pins: pins.slice(1), stages: stages.slice(1) })
  })

  it('end with the store that holds them', async () => {
    const definition = mem({ medium: createMedium() })
    const other = await definition.open(context)
    catalog = other.catalog as Catalog
    await catalog.meta.compareAndSet(undefined, record, call)
    await put(1, { pin: pin('other') })
    await catalog.lease(call)
    const mine = (await definition.open(context)).catalog as Catalog
    expect(await mine.mark(key(1), call)).toBe('pinned')
    expect(await mine.lease(call)).toBeUndefined()
    await other.close()
    expect(await mine.mark(key(1), call)).toMatchObject({ entry: { key: key(1) } })
    expect(await mine.lease(call)).toBeDefined()
  })
})

describe('a sweep', () => {
  it('has one holder, and nothing works without', async () => {
    const lease = await leased()
    expect(await catalog.lease(call)).toBeUndefined()
    await lease.release()
    const next = await leased()
    await lease.release()
    expect(await catalog.lease(call)).toBeUndefined()
    await put(1)
    await catalog.stageCandidates(next, [key(1)], call)
    await next.release()
    await next.release()
    await expect(removeCandidate(1, next)).rejects.toThrow('lease')
    for (const refused of [
      catalog.candidates(next, undefined, 1, call),
      catalog.stageCandidates(next, [key(1)], call),
      catalog.due(next, undefined, 1, call),
      catalog.maintain(next, call)
    ])
      await expect(refused).rejects.toThrow('lease')
    expect(await catalog.list(undefined, 9, call)).toHaveLength(1)
  })

  it('counts what it looks at, and stages the rest', async () => {
    for (const n of [1, 2, 3, 4]) await put(n)
    await catalog.pin([{ key: key(2), pin: row(), ttlMs: 1 }], call)
    const lease = await leased()
    expect(await catalog.stageCandidates(lease, [key(3), key(2), key(9)], call)).toEqual([key(3)])
    expect(await catalog.stageCandidates(lease, [key(3)], call)).toEqual([])
    const first = await catalog.candidates(lease, undefined, 3, call)
    expect(first).toEqual({ scanned: 3, live: 1, alreadyStaged: 1, cancelled: [], keys: [key(1)], next: key(3) })
    const second = await catalog.candidates(lease, first.next, 3, call)
    expect(second).toEqual({ scanned: 1, live: 0, alreadyStaged: 0, cancelled: [], keys: [key(4)], next: undefined })
  })

  it('pages the due rows oldest first, also while they are executed', async () => {
    for (const n of [3, 1, 2]) await put(n)
    const lease = await leased()
    await catalog.stageCandidates(lease, [key(3), key(1), key(2)], call)
    const first = await catalog.due(lease, undefined, 2, call)
    expect(first.keys).toEqual([key(3), key(1)])
    await removeCandidate(3, lease)
    expect(await catalog.due(lease, first.next, 2, call)).toEqual({ keys: [key(2)], next: undefined })
  })

  it('leaves alone what was pinned when it began, and what is put or pinned while it lasts', async () => {
    await put(1, { pin: pin() })
    await put(2)
    await put(3)
    await put(4)
    const lease = await leased()
    await catalog.release([{ key: key(1), pin: row() }], call)
    await put(2)
    await catalog.pin([{ key: key(3), pin: row(), ttlMs: 1 }], call)
    await catalog.release([{ key: key(3), pin: row() }], call)
    expect(await catalog.candidates(lease, undefined, 9, call)).toMatchObject({ live: 3, keys: [key(4)] })
    await catalog.stageCandidates(lease, [1, 2, 3, 4].map(key), call)
    for (const n of [1, 2, 3]) expect(await removeCandidate(n, lease)).toEqual({ outcome: 'cancelled' })
    expect(await removeCandidate(4, lease)).toMatchObject({ outcome: 'deleted', entry: { key: key(4) } })
    expect((await catalog.usage(call)).window).toBe(0)
    await lease.release()
    const next = await leased()
    await catalog.stageCandidates(next, [key(1)], call)
    expect(await removeCandidate(1, next)).toMatchObject({ outcome: 'deleted' })
  })

  it('is refused by a put, a pin or a live key since the staging, and tells what went before it', async () => {
    for (const n of [1, 2, 3, 4]) await put(n)
    const lease = await leased()
    await catalog.stageCandidates(lease, [1, 2, 3, 4].map(key), call)
    await catalog.publish([{ key: key(1), length: 1, bytes: { kind: 'none' }, trashDelayMs: 0 }], call)
    await removeMarked(2, (await marked(2)).mark)
    await catalog.pin([{ key: key(3), pin: row(), ttlMs: 1 }], call)
    expect((await catalog.explain(key(1), call)).window?.cancelled).toBe(true)
    expect(await removeCandidate(1, lease)).toEqual({ outcome: 'cancelled' })
    expect(await removeCandidate(2, lease)).toEqual({ outcome: 'deleted', entry: undefined })
    expect(await removeCandidate(3, lease)).toEqual({ outcome: 'cancelled' })
    expect(await removeCandidate(4, lease, true)).toEqual({ outcome: 'cancelled' })
    expect(await removeCandidate(4, lease)).toEqual({ outcome: 'cancelled' })
  })
})

describe('a later sweep', () => {
  it('spares what was put between the staging of an earlier one and its own lease', async () => {
    await put(1)
    const lease = await leased()
    await catalog.stageCandidates(lease, [key(1)], call)
    await lease.release()
    await put(1)
    const next = await leased()
    expect(await catalog.candidates(next, undefined, 9, call)).toMatchObject({ alreadyStaged: 1, cancelled: [key(1)] })
    expect(await removeCandidate(1, next)).toEqual({ outcome: 'cancelled' })
  })
})

describe('a direct delete', () => {
  it('is cancelled by a put or pin since its mark, and then ends', async () => {
    await put(1)
    const { mark } = await marked(1)
    await put(1)
    expect(await removeMarked(1, mark)).toEqual({ outcome: 'cancelled' })
    expect(await removeMarked(1, mark)).toEqual({ outcome: 'cancelled' })
    expect(await removeMarked(1, (await marked(1)).mark, { live: true })).toEqual({ outcome: 'cancelled' })
    const [one, other] = [await marked(1), await marked(1)]
    expect(await removeMarked(1, one.mark)).toMatchObject({ outcome: 'deleted' })
    expect(await removeMarked(1, other.mark)).toEqual({ outcome: 'absent' })
    expect(await catalog.mark(key(1), call)).toBe('absent')
  })

  it('needs no lease, heeds the place it was given, and leaves the row of a sweep', async () => {
    await putLarge(1)
    const lease = await leased()
    await catalog.stageCandidates(lease, [key(1)], call)
    const elsewhere = { at: { tier: 'large', locator: locator(7) } }
    expect(await removeMarked(1, (await marked(1)).mark, elsewhere)).toEqual({ outcome: 'absent' })
    const there = { at: { tier: 'large', locator: locator(1) } }
    expect(await removeMarked(1, (await marked(1)).mark, there)).toMatchObject({ outcome: 'deleted' })
    expect((await catalog.usage(call)).window).toBe(1)
    expect(await catalog.trash(undefined, 9, call)).toMatchObject([{ what: locator(1) }])
  })
})

describe('trash', () => {
  it('holds ended and expired stages, pages in order, and puts off what failed', async () => {
    await catalog.stage(
      [
        { id: stage(2), ttlMs: 9_000 },
        { id: stage(1), ttlMs: -1 },
        { id: stage(3), ttlMs: 9_000 }
      ],
      call
    )
    expect(await catalog.unstage([stage(2), stage(8)], call)).toEqual([true, false])
    expect(await catalog.maintain(await leased(), call)).toEqual({ pinsReaped: 0, stagesTrashed: 1 })
    const all = await catalog.trash(undefined, 9, call)
    expect(all).toEqual([1, 2].map(n => ({ what: stage(n), key: undefined, length: undefined, attempts: 0 })))
    expect(await catalog.trash(stage(1), 1, call)).toEqual(all.slice(1))
    await catalog.dropped(
      [{ what: stage(1) }, { what: stage(2), retryAfterMs: 60_000 }, { what: stage(9), retryAfterMs: 1 }],
      call
    )
    expect(await catalog.trash(undefined, 9, call)).toEqual([])
    expect(await catalog.usage(call)).toMatchObject({ trash: 1, stages: 1 })
  })

  it('keeps a row as it was trashed first: its tries, what it is of, and when it may be dropped', async () => {
    await putLarge(1)
    await removeMarked(1, (await marked(1)).mark)
    await catalog.dropped([{ what: locator(1), retryAfterMs: 0 }], call)
    const first = [{ what: locator(1), key: key(1), length: 9, attempts: 1 }]
    expect(await catalog.trash(undefined, 9, call)).toEqual(first)

    // Another entry that names the same body ends, and asks for a delay.
    await catalog.stage([{ id: stage(2), ttlMs: 10_000 }], call)
    const again = { key: key(2), length: 9, bytes: { ...staged(2), locator: locator(1) }, trashDelayMs: 0 }
    await catalog.publish([again], call)
    const removal = { kind: 'marked', key: key(2), mark: (await marked(2)).mark, live: false } as const
    expect(await catalog.remove([removal], 60_000, undefined, call)).toMatchObject([{ outcome: 'deleted' }])
    expect(await catalog.trash(undefined, 9, call)).toEqual(first)
    expect((await catalog.usage(call)).trash).toBe(1)
  })

  it('tells a body that no row knows, and takes only that', async () => {
    await putLarge(1)
    await catalog.stage([{ id: stage(2), ttlMs: 9_000 }], call)
    const sealed = (n: number, by = n) => ({
      stage: stage(by),
      sealed: { locator: locator(by), key: key(n), length: 9, whole: true }
    })
    const found = [sealed(1), { stage: stage(2) }, sealed(1, 5), { stage: stage(6) }]
    expect(await catalog.known(found, call)).toEqual([true, true, false, false])
    await catalog.discard(found, call)
    expect(await catalog.trash(undefined, 9, call)).toEqual([
      { what: stage(6), key: undefined, length: undefined, attempts: 0 },
      { what: locator(5), key: key(1), length: 9, attempts: 0 }
    ])
    expect(await catalog.known(found, call)).toEqual([true, true, true, true])
  })
})

describe('beside a durable catalog, where pins expire', () => {
  it('neither counts nor tells a pin that has expired', async () => {
    const durable = (await mem().open({ ...context, form: 'durable' })).catalog as Catalog
    await durable.meta.compareAndSet(undefined, record, call)
    const { body } = inline('body')
    const pinned = (owner: string, ttlMs: number) => ({ row: row(owner), ttlMs })
    const item = { key: key(1), length: body.byteLength, bytes: inline('body'), trashDelayMs: 0 }
    await durable.publish(
      [
        { ...item, pin: pinned('late', -1) },
        { ...item, pin: pinned('in time', 60_000) }
      ],
      call
    )
    expect(await durable.usage(call)).toMatchObject({ pins: 1 })
    expect((await durable.explain(key(1), call)).pins).toMatchObject([{ owner: 'in time' }])
  })
})
