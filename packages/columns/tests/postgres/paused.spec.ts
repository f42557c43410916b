/**
 * G7: whoever was stopped for longer than every life of a pin and a stage, and goes on, harms nobody. The processes are stopped by the
 * system (SIGSTOP), timers and all, at a phase that they have announced; what passes meanwhile is waited for on the server.
 */
import { setTimeout as sleep } from 'node:timers/promises'
import type { BlobKey, Store } from '@alkblobs/core'
import { noServer } from '@alkblobs/testkit'
import { afterEach, describe, expect, it } from 'vitest'
import { Child } from '../processes/children.js'
import { contentOf } from './contents.js'
import { type FleetPool, fleetPool, KINDS, type Kind } from './fleet-places.js'

const LIMIT_MS = 90_000
/** Renewed often enough that a busy machine loses nothing before it is meant to. */
const LIVES = { fleet: { pinTtlMs: 4_000 }, stageTtlMs: 4_000 }
const SHORT = 900
const LONG = 1_500_000

interface Content {
  readonly name: string
  readonly length: number
}
interface Outcome<T> {
  readonly value?: T
  readonly error?: { readonly code?: string; readonly message: string }
}

describe.skipIf(noServer() !== undefined).each(KINDS)('over a fleet whose large bodies are %s,', kind => {
  const pools: FleetPool[] = []
  afterEach(async () => {
    for (const pool of pools.splice(0)) await pool.drop()
  })
  const newPool = async () => {
    const pool = await fleetPool(kind)
    pools.push(pool)
    return pool
  }

  it('a sweeper that was stopped at any phase removes nothing that others have put since', {
    timeout: LIMIT_MS
  }, async () => {
    const staged = await Promise.all(sweepPhases(kind).map(async phase => stagedPool(await newPool(), phase)))
    const tasks = staged.map(({ pool, phase, live }) => ({
      operation: 'sweep',
      place: pool.place,
      name: nameOf(pool),
      phase,
      live
    }))
    const child = new Child('../../postgres/workers/paused.mjs', { given: { tasks }, limitMs: LIMIT_MS })
    expect(await child.next()).toEqual({ at: 'phases' })
    await child.pause()
    for (const each of staged) await overtake(each)
    child.resume()
    child.tell()
    const { outcomes } = await child.next<{ outcomes: Outcome<Swept>[] }>()
    for (const [at, { value, error }] of outcomes.entries()) {
      const each = staged[at] as Staged
      const what = `${each.phase.side} ${each.phase.step}`
      expect(error, what).toBeUndefined()
      const { aborted, deleted, failed } = value as Swept
      // After its last removal a sweep may find nothing more to do, and end well.
      if (!LATE.has(what)) expect(aborted, what).toBe('LeaseLost')
      expect(failed, what).toBe(0)
      expect(deleted + each.othersDeleted, `${what}: every removal is counted once`).toBe(each.dead)
      await unharmed(each, what)
    }
    await child.finish()
  })

  it('a writer that was stopped at any phase publishes nothing it cannot protect', { timeout: LIMIT_MS }, async () => {
    const pool = await newPool()
    const other = await pool.open()
    other.protect({ name: 'nothing', live: () => [] })
    const tasks = writePhases(kind).map(({ phase, length }, n) => ({
      operation: 'put',
      place: pool.place,
      name: `stopped writer ${n}`,
      phase,
      content: { name: `late ${n}`, length },
      options: LIVES
    }))
    // The pool is there before its writers come.
    await (await other.put('first')).release()
    const child = new Child('../../postgres/workers/paused.mjs', { given: { tasks }, limitMs: LIMIT_MS })
    expect(await child.next()).toEqual({ at: 'phases' })
    await child.pause()
    await everythingExpired(pool)
    expect((await other.maintain({ scan: true })).aborted).toBeUndefined()
    for (let time = 0; time < 2; time++) expect((await other.sweep()).aborted).toBeUndefined()
    expect((await other.usage()).entries).toBe(0)
    // Of every second content another instance has made an entry of its own meanwhile.
    const held = await Promise.all(
      tasks.flatMap(({ content }, n) => (n % 2 === 0 ? [] : [other.put(contentOf(content.name, content.length))]))
    )
    child.resume()
    child.tell()
    const { outcomes } = await child.next<{ outcomes: Outcome<{ key: BlobKey; held: boolean }>[] }>()
    for (const [n, { value, error }] of outcomes.entries()) {
      const { phase, expected } = writePhases(kind)[n] as WritePhase
      const what = `${phase.side} ${phase.step}`
      // A protection that is claimed is one: the row is there, and the bytes are.
      if (expected === undefined) expect([error, value?.held], what).toEqual([undefined, true])
      else expect(error?.code, `${what}: ${error?.message}`).toBe(expected)
      if (value !== undefined) expect((await other.get(value.key))?.size, what).toBe(tasks[n]?.content.length)
    }
    await child.finish()
    for (const [n, receipt] of held.entries()) {
      const { content } = tasks[2 * n + 1] as (typeof tasks)[number]
      expect(receipt.pin?.held).toBe(true)
      expect(same(await bytesAt(other, receipt.key), content), 'what another instance put').toBe(true)
    }
    expect((await other.verify()).clean).toBe(true)
    await nothingIsLeft(pool, other, held)
  })

  it('a holder that was stopped believes in nothing when it goes on, and takes nothing back', {
    timeout: LIMIT_MS
  }, async () => {
    const pool = await newPool()
    const other = await pool.open()
    other.protect({ name: 'nothing', live: () => [] })
    const contents = [SHORT, LONG].flatMap(length =>
      kind === 'rows' && length === LONG ? [] : [0, 1].map(n => ({ name: `held ${n}`, length }))
    )
    // Its stages live long, so that no maintenance of its own comes between the sweeps of others.
    const options = { fleet: LIVES.fleet }
    const given = { place: pool.place, name: 'stopped holder', contents, options }
    const child = new Child('../../postgres/workers/holder.mjs', { given, limitMs: LIMIT_MS })
    const ask = async <T>(what: string) => {
      child.tell({ ask: what })
      return (await child.next<{ answer: T }>()).answer
    }
    const { keys } = await child.next<{ keys: BlobKey[] }>()
    expect(await other.sweep()).toMatchObject({ live: contents.length, deleted: 0 })
    await child.pause()
    await everythingExpired(pool)
    expect(await other.sweep()).toMatchObject({ candidatesStaged: contents.length })
    expect(await other.sweep()).toMatchObject({ deleted: contents.length })
    // The first of each pair is somebody else's by the time the holder goes on.
    const mine = contents.filter((_, n) => n % 2 === 0)
    const held = await Promise.all(mine.map(({ name, length }) => other.put(contentOf(name, length))))
    child.tell({ ask: 'beliefs' })
    child.resume()
    const { answer: beliefs } = await child.next<{ answer: { held: boolean }[] }>()
    expect(beliefs.map(each => each.held)).toEqual(contents.map(() => false))
    await ask('renew')
    const lost = await ask<{ held: boolean; isLost: boolean }[]>('beliefs')
    expect(lost).toEqual(contents.map(() => ({ held: false, isLost: true })))
    expect(await ask('counted')).toBe(0)
    expect(await pinsOf(pool)).toEqual(held.map(({ key }) => key).sort())
    expect([...(await other.hasMany(keys)).values()].filter(Boolean).length).toBe(held.length)
    expect(await ask('putAgain')).toEqual(contents.map((_, n) => n % 2 === 1))
    await ask('releaseEarly')
    await ask('renew')
    expect((await pinsOf(pool)).length, 'late releases ended no row that came after').toBe(
      contents.length + held.length
    )
    expect(await other.sweep()).toMatchObject({ deleted: 0, live: contents.length })
    await ask('close')
    await child.finish()
    await nothingIsLeft(pool, other, held)
  })
})

/** Each pool's sweeper is cut off by itself. */
const nameOf = ({ place }: FleetPool) => `${place.schema} stopped`

interface Phase {
  readonly step: string
  readonly side: 'before' | 'after'
}
interface Swept {
  readonly aborted?: string
  readonly deleted: number
  readonly failed: number
}

function sweepPhases(kind: Kind): Phase[] {
  const rows: Phase[] = [
    { step: 'lease', side: 'after' },
    { step: 'maintain', side: 'before' },
    { step: 'due', side: 'after' },
    { step: 'remove', side: 'before' },
    { step: 'remove', side: 'after' },
    { step: 'candidates', side: 'after' }
  ]
  if (kind === 'rows') return rows
  return [
    ...rows,
    { step: 'trash', side: 'after' },
    { step: 'drop', side: 'before' },
    { step: 'drop', side: 'after' },
    { step: 'dropped', side: 'before' }
  ]
}
/** Phases after which a sweep may have nothing to do any more that needs its lease. */
const LATE = new Set(['after candidates', 'after trash', 'before drop', 'after drop', 'before dropped'])

interface WritePhase {
  readonly phase: Phase
  readonly length: number
  /** The code of the failure; none where the put may end well, because its row was written afterwards. */
  readonly expected: string | undefined
}

function writePhases(kind: Kind): WritePhase[] {
  const at = (step: string, side: Phase['side'], length: number, expected?: string): WritePhase => ({
    phase: { step, side },
    length,
    expected
  })
  const inline = [at('publish', 'before', SHORT), at('publish', 'after', SHORT, 'ERR_BLOB_PIN_LOST')]
  if (kind === 'rows') return inline
  const lost = 'ERR_BLOB_STAGE_LOST'
  return [
    ...inline,
    at('stage', 'after', LONG, lost),
    at('create', 'after', LONG, lost),
    at('write', 'before', LONG, lost),
    at('write', 'after', LONG, lost),
    at('seal', 'before', LONG, lost),
    at('seal', 'after', LONG, lost),
    at('publish', 'before', LONG, lost),
    at('publish', 'after', LONG, 'ERR_BLOB_PIN_LOST')
  ]
}

interface Staged {
  readonly pool: FleetPool
  readonly phase: Phase
  readonly other: Store
  readonly contents: readonly Content[]
  readonly keys: readonly BlobKey[]
  /** What the source of the sweeper calls live: nothing that others will have put by then. */
  readonly live: readonly BlobKey[]
  /** How many entries somebody has to delete before the end of it all. */
  dead: number
  othersDeleted: number
  held: Awaited<ReturnType<Store['put']>>[]
}

/** Twelve contents of both lengths, all staged but for the last two, which are referenced. */
async function stagedPool(pool: FleetPool, phase: Phase): Promise<Staged> {
  const other = await pool.open()
  const contents = Array.from({ length: 12 }, (_, n) => ({ name: `staged ${n}`, length: lengthAt(n, pool) }))
  const receipts = await Promise.all(contents.map(({ name, length }) => other.put(contentOf(name, length))))
  const keys = receipts.map(({ key }) => key)
  for (const receipt of receipts) await receipt.release()
  const live = keys.slice(-2)
  const staging = other.protect({ name: 'references', live: () => live })
  expect(await other.sweep()).toMatchObject({ candidatesStaged: 10, live: 2 })
  staging.remove()
  return { pool, phase, other, contents, keys, live, dead: 10, othersDeleted: 0, held: [] }
}

const lengthAt = (n: number, { place }: FleetPool) => (n % 2 === 0 || place.kind === 'rows' ? SHORT : 6_000)

/** What others do while the sweeper stands: they take over, put again, reference, and collect the rest. */
async function overtake(each: Staged): Promise<void> {
  const { pool, other, contents, keys, phase } = each
  const before = [...(await other.hasMany(keys)).values()].filter(Boolean).length
  const nothing = other.protect({ name: 'nothing', live: () => [] })
  expect((await other.sweep()).aborted, `${phase.side} ${phase.step}: its lease lives`).toBe('SweeperLock')
  nothing.remove()
  expect((await other.maintain()).aborted).toBe('SweeperLock')
  await pool.endSessions(nameOf(pool))
  const putAgain = (from: number, to: number) =>
    Promise.all(contents.slice(from, to).map(({ name, length }) => other.put(contentOf(name, length))))
  each.held = await putAgain(0, 4)
  const rescued = each.held.filter(({ created }) => !created).length
  // A source of everybody's that came after the sweeper had asked its own.
  other.protect({ name: 'references', live: () => [...each.live, ...keys.slice(4, 6)] })
  let deleted = 0
  for (let time = 0; time < 2; time++) {
    const report = await other.sweep()
    expect(report.aborted).toBeUndefined()
    deleted += report.deleted
  }
  each.othersDeleted = deleted
  // What was put again or referenced in time is dead for nobody.
  const referenced = before === 12 ? 2 : 0
  each.dead = 10 - rescued - referenced
  each.held.push(...(await putAgain(6, 8)))
}

/** Everything that is held or referenced is whole, and whatever nobody wants goes in the end. */
async function unharmed({ pool, other, contents, keys, held, live }: Staged, what: string): Promise<void> {
  for (const { key } of held) {
    const content = contents[keys.indexOf(key)] as Content
    expect(same(await bytesAt(other, key), content), `${what}: what others hold`).toBe(true)
  }
  for (const key of live) expect(await other.has(key), `${what}: what is referenced`).toBe(true)
  expect((await other.verify()).clean, what).toBe(true)
  const left = (await other.usage()).entries
  for (const receipt of held) await receipt.release()
  await other.deleteMany(live)
  for (let time = 0; time < 3; time++) await other.sweep()
  const { entries, pins, stages, trash } = await other.usage()
  // The references are as the test left them: two of the staged ones if they were there to be referenced, and the two live ones.
  expect({ pins, stages, trash }, what).toEqual({ pins: 0, stages: 0, trash: 0 })
  expect(entries, what).toBeLessThanOrEqual(left)
  const large = (await other.usage()).perTier.large.entries
  expect(await pool.bodies(), what).toEqual({ sealed: large, halves: 0 })
}

/** Waits until the server itself says that no pin and no stage lives any more. */
async function everythingExpired(pool: FleetPool): Promise<void> {
  const alive = `SELECT (SELECT count(*)::int FROM $.gc_pins WHERE expires_at > clock_timestamp())
    + (SELECT count(*)::int FROM $.stages WHERE expires_at > clock_timestamp()) AS n`
  for (const end = performance.now() + 30_000; (await pool.rows<{ n: number }>(alive))[0]?.n !== 0; await sleep(100))
    if (performance.now() > end) throw new Error('pins and stages of a stopped process did not expire')
}

async function pinsOf(pool: FleetPool): Promise<string[]> {
  const rows = await pool.rows<{ key: string }>(
    "SELECT 'blake3:' || encode(key, 'hex') AS key FROM $.gc_pins ORDER BY 1"
  )
  return rows.map(({ key }) => key)
}

async function nothingIsLeft(
  pool: FleetPool,
  store: Store,
  held: readonly { release(): Promise<void> }[]
): Promise<void> {
  for (const receipt of held) await receipt.release()
  await everythingExpired(pool)
  for (let time = 0; time < 3; time++) expect((await store.sweep()).aborted).toBeUndefined()
  // What could not be dropped while the stopped process held it waits for its next try.
  await pool.rows("UPDATE $.trash SET not_before = 'epoch'")
  await store.maintain({ scan: true })
  const { entries, pins, window, stages, trash } = await store.usage()
  expect({ entries, pins, window, stages, trash }).toEqual({ entries: 0, pins: 0, window: 0, stages: 0, trash: 0 })
  expect(await pool.bodies()).toEqual({ sealed: 0, halves: 0 })
}

async function bytesAt(store: Store, key: BlobKey): Promise<Uint8Array | undefined> {
  return await (await store.get(key))?.bytes()
}

function same(bytes: Uint8Array | undefined, { name, length }: Content): boolean {
  return bytes !== undefined && Buffer.compare(bytes, contentOf(name, length)) === 0
}
