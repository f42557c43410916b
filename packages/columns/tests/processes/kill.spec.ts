// Processes killed at any moment of their work, over sqlite + local: what was acknowledged is there, whole, and one maintenance
// and one sweep later nothing of the dead is left.
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { setTimeout as passed } from 'node:timers/promises'
import { expect, it } from 'vitest'
import { Agent, Child, fractionOf, newSeed, report, temporaryFolder } from './children.js'

const LIMIT_MS = 180_000
/** Longer than any TTL of the pool. */
const LONG_AGO_MS = 24 * 3_600_000

interface Reference {
  readonly key: string
  readonly name: string
  readonly length: number
}
interface Usage {
  readonly entries: number
  readonly perTier: Record<'kv' | 'large', { readonly entries: number }>
}
interface Reaped {
  readonly stagesReclaimed: number
  readonly pinsReaped: number
}
interface Sweep {
  readonly deleted: number
  readonly cancelledByArbitration: number
  readonly candidatesStaged: number
  readonly durationMs: number
}

/** What the log says is referenced. Its last line may be half a line: that one was never acknowledged. */
function referencesIn(log: string): Reference[] {
  if (!existsSync(log)) return []
  const lines = readFileSync(log, 'utf8').split('\n').slice(0, -1)
  return lines.map(line => JSON.parse(line))
}

/** Reads these back in a store that was just opened: each is whole, and is what was put. */
async function readBack(agent: Agent, references: readonly Reference[]): Promise<void> {
  const reads = await Promise.all(references.map(reference => agent.ask<string>('get', reference)))
  expect(references.filter((_, i) => reads[i] !== 'same')).toEqual([])
}

/** Nothing but whole entries: no row, no file, no half of either. */
async function expectNothingLeft(agent: Agent, entries: number): Promise<void> {
  expect(await agent.ask('verify')).toMatchObject({ clean: true, entries })
  const { perTier } = await agent.ask<Usage>('usage')
  const bodies = perTier.kv.entries
  expect(await agent.ask('rows')).toMatchObject({ entries, bodies, gc_pins: 0, stages: 0, trash: 0 })
  expect(await agent.ask('files')).toEqual({ bodies: perTier.large.entries, stages: 0 })
}

/** Lets a writer open the pool and say so many things, kills it `delayMs` later, and answers what it has acknowledged. */
async function killWriter(writer: Child, things: number, delayMs: number): Promise<Reference[]> {
  const said: (Reference | { at: string })[] = []
  // The process runs, and waits.
  await writer.next()
  writer.tell()
  for (let i = 0; i < things; i++) said.push(await writer.next<Reference>())
  await passed(delayMs)
  expect((await writer.kill()).signal).toBe('SIGKILL')
  said.push(...writer.rest<Reference>())
  return said.filter(message => 'key' in message)
}

function startWriter(folder: string, log: string, seed: number): Child {
  return new Child('killed-writer.mjs', { given: { folder, log, seed }, limitMs: LIMIT_MS })
}

/** Opens the pool after a death, looks, lets the time of the dead run out, sweeps, looks again. */
async function recover(agent: Agent, live: readonly Reference[]): Promise<Sweep & Reaped> {
  await agent.ask('open')
  await readBack(agent, live)
  await agent.ask('age', { ms: LONG_AGO_MS })
  const reaped = await agent.ask<Reaped>('maintain')
  expect(reaped).toMatchObject({ failed: [], orphans: 0 })
  const swept = await agent.ask<Sweep>('sweep', { keys: live.map(({ key }) => key) })
  expect(swept).not.toHaveProperty('aborted')
  expect(swept).toMatchObject({ failed: [], stagesReclaimed: 0, pinsReaped: 0 })
  const { entries } = await agent.ask<Usage>('usage')
  expect(entries).toBeGreaterThanOrEqual(new Set(live.map(({ key }) => key)).size)
  await expectNothingLeft(agent, entries)
  await agent.ask('close')
  return { ...swept, ...reaped }
}

// Invariants 1, 2 and 9; the crash points that lie in puts and deletes.
it('keeps what was acknowledged through 50 kills of its writer, and nothing of what was not', {
  timeout: LIMIT_MS
}, async () => {
  const folder = await temporaryFolder()
  const log = join(folder, 'references.log')
  const seed = newSeed('killed writer')
  const agent = new Agent(folder, LIMIT_MS)
  const totals = { acknowledged: 0, deleted: 0, stagesReclaimed: 0, pinsReaped: 0 }
  let next = startWriter(folder, log, seed)
  for (let kill = 0; kill < 50; kill++) {
    const writer = next
    // The first thing it says is that it has opened, the second is its first put. The first writer must get so far.
    const things = Math.max(kill === 0 ? 2 : 0, Math.floor(fractionOf(seed, `things ${kill}`) * 12))
    const acknowledged = await killWriter(writer, things, fractionOf(seed, `delay ${kill}`) * 20)
    // The next one starts, but opens nothing, while the pool is looked at.
    next = startWriter(folder, log, seed + kill + 1)
    const logged = referencesIn(log)
    const keys = new Set(logged.map(({ key }) => key))
    expect(acknowledged.filter(({ key }) => !keys.has(key))).toEqual([])
    // The application drops old references, so that there is something to sweep.
    const isFresh = new Set(acknowledged.map(({ key }) => key))
    const live = logged.filter(({ key }, i) => i >= logged.length - 60 || isFresh.has(key))
    const { deleted, stagesReclaimed, pinsReaped } = await recover(agent, live)
    totals.acknowledged += acknowledged.length
    totals.deleted += deleted
    totals.stagesReclaimed += stagesReclaimed
    totals.pinsReaped += pinsReaped
  }
  await next.kill()
  report(`50 kills of a writer: ${JSON.stringify(totals)}`)
  // The kills must have hit something: writes half done, and pins still held.
  expect(totals.acknowledged).toBeGreaterThan(50)
  expect(totals.stagesReclaimed).toBeGreaterThan(0)
  expect(totals.pinsReaped).toBeGreaterThan(0)
})

// The crash points in the making of a pool: whatever is there, the next process takes it from there.
it('opens what 10 kills left of a pool in the making', { timeout: LIMIT_MS }, async () => {
  const seed = newSeed('killed maker')
  for (let kill = 0; kill < 10; kill++) {
    const folder = await temporaryFolder()
    const log = join(folder, 'references.log')
    const writer = startWriter(folder, log, seed + kill)
    const agent = new Agent(folder, LIMIT_MS)
    await killWriter(writer, 0, fractionOf(seed, `delay ${kill}`) * 60)
    await agent.ask('age', { ms: LONG_AGO_MS })
    await agent.ask('open')
    const content = { name: 'first of the next', length: 20_000 }
    const { key, pin } = await agent.ask<{ key: string; pin: number }>('put', content)
    await readBack(agent, [...referencesIn(log), { key, ...content }])
    await agent.ask('release', { pin })
    await agent.ask('flush')
    const { entries } = await agent.ask<Usage>('usage')
    await agent.ask('maintain')
    await expectNothingLeft(agent, entries)
    await agent.finish()
  }
})

interface Rows {
  readonly entries: number
  readonly gc_window: number
}

// O15: the collector dies anywhere in a sweep of 1000 candidates; the next sweep completes it, and the counts add up.
it('completes a sweep after each of 20 kills of its sweeper', { timeout: LIMIT_MS }, async () => {
  const folder = await temporaryFolder()
  const seed = newSeed('killed sweeper')
  const agent = new Agent(folder, LIMIT_MS)
  await agent.ask('open')
  const kept = await agent.ask<string[]>('fill', {
    contents: { prefix: 'kept ', to: 50, lengths: [16, 3_000, 5_000] },
    lanes: 25
  })
  for (const key of kept) await agent.ask('reference', { key })
  const startSweeper = () => new Child('sweeper.mjs', { given: { folder, once: true }, limitMs: LIMIT_MS })
  const fill = async (prefix: string) => {
    const lengths = [16, 200, 3_000, 700, 90, 1_000, 2_000, 20, 500, 4_000, 6_000, 50, 32, 900, 64, 60, 128, 30, 48, 80]
    await agent.ask('fill', { contents: { prefix, to: 1_000, lengths }, lanes: 256 })
    expect(await agent.ask('sweep')).toMatchObject({ candidatesStaged: 1_000, deleted: 0 })
    await agent.ask('age', { ms: LONG_AGO_MS })
  }
  /** Lets a sweeper begin, once it has opened the pool. */
  const sweepOnce = async (sweeper: Child): Promise<void> => {
    await sweeper.next()
    sweeper.tell()
    await sweeper.next()
  }

  // One sweep that nobody disturbs tells how long they take here.
  await fill('measured ')
  const measured = startSweeper()
  await sweepOnce(measured)
  const { report: undisturbed } = await measured.next<{ report: Sweep }>()
  expect(undisturbed).toMatchObject({ deleted: 1_000 })
  let wholeMs = undisturbed.durationMs
  await measured.finish()

  const totals = { unfinished: 0, partial: 0, deletedByTheKilled: 0, deletedAfterwards: 0 }
  for (let kill = 0; kill < 20; kill++) {
    const sweeper = startSweeper()
    await fill(`${kill} `)
    await sweepOnce(sweeper)
    await passed(fractionOf(seed, `moment ${kill}`) * wholeMs)
    await sweeper.kill()
    // One that was quicker than the kill lowers the range of the moments to come.
    const [finished] = sweeper.rest<{ report: Sweep }>()
    if (finished === undefined) totals.unfinished++
    else wholeMs = Math.min(wholeMs, finished.report.durationMs)

    const { entries, gc_window } = await agent.ask<Rows>('rows')
    const left = entries - kept.length
    // An entry and its candidate's row go together.
    expect(gc_window).toBe(left)
    expect(await agent.ask('verify')).toMatchObject({ clean: true, entries })
    const finishing = await agent.ask<Sweep>('sweep')
    expect(finishing).not.toHaveProperty('aborted')
    expect(finishing).toMatchObject({ deleted: left, cancelledByArbitration: 0, candidatesStaged: 0, failed: [] })
    expect(await agent.ask<Rows>('rows')).toMatchObject({ gc_window: 0 })
    await expectNothingLeft(agent, kept.length)
    totals.deletedByTheKilled += 1_000 - left
    totals.deletedAfterwards += left
    if (left > 0 && left < 1_000) totals.partial++
  }
  report(`20 kills of a sweeper (a whole sweep takes ${wholeMs.toFixed(0)} ms): ${JSON.stringify(totals)}`)
  // The kills must have hit sweeps, and some of them in the middle of their removals.
  expect(totals.unfinished).toBeGreaterThan(5)
  expect(totals.partial).toBeGreaterThan(0)
  await agent.finish()
})
