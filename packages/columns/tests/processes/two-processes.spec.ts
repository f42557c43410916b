// Writers and sweepers in different processes, over sqlite + local: nothing that is pinned or referenced is ever lost.
import { expect, it } from 'vitest'
import { Agent, Child, newSeed, report, temporaryFolder } from './children.js'

const LIMIT_MS = 180_000
const LARGE = 50_000

interface Usage {
  readonly entries: number
  readonly bytes: number
  readonly window: number
  readonly stages: number
  readonly trash: number
  readonly pins: number
  readonly perTier: { readonly large: { readonly entries: number } }
}
interface Sweep {
  readonly aborted?: string
  readonly live: number
  readonly candidatesStaged: number
  readonly deleted: number
  readonly cancelledByArbitration: number
  readonly bytesDeleted: number
  readonly failed: readonly unknown[]
}
interface Held {
  readonly key: string
  readonly created: boolean
  readonly pin: number
}

async function agents(folder: string, count: number, options: object = {}): Promise<Agent[]> {
  const started = Array.from({ length: count }, () => new Agent(folder, LIMIT_MS))
  for (const agent of started) await agent.ask('open', { options })
  return started
}

// O08: entry and pin appear together. O01: references taken over from pins. O09, O10, O11: puts of what is just being collected.
it('loses nothing in 500 rounds of put, read, reference and release beside a process that sweeps without a pause', {
  timeout: LIMIT_MS
}, async () => {
  const folder = await temporaryFolder()
  const seed = newSeed('two processes')
  const sweeper = new Child('sweeper.mjs', { given: { folder }, limitMs: LIMIT_MS })
  await sweeper.next()
  const start = performance.now()
  const writer = new Child('referencing-writer.mjs', { given: { folder, seed, rounds: 500 }, limitMs: LIMIT_MS })
  await writer.next()
  const wrote = await writer.next<{
    puts: number
    created: number
    createdBytes: number
    pins: number
    references: number
    reads: number
    referenced: string[]
  }>()
  await writer.finish()
  sweeper.tell()
  const swept = await sweeper.next<{
    sweeps: number
    staged: number
    deleted: number
    cancelled: number
    bytesDeleted: number
    failed: number
    window: number
  }>()
  await sweeper.finish()
  report(`two processes: ${JSON.stringify({ seconds: (performance.now() - start) / 1_000, ...wrote, ...swept })}`)

  expect(wrote.puts).toBe(500)
  // The race must have been one: entries went, and came again.
  expect(swept.deleted).toBeGreaterThan(20)
  // Every candidate ended as deleted or as cancelled, or waits.
  expect(swept.staged).toBe(swept.deleted + swept.cancelled + swept.window)
  expect(swept.failed).toBe(0)

  const [last] = (await agents(folder, 1)) as [Agent]
  const before = await last.ask<Usage>('usage')
  expect(before.entries).toBe(wrote.created - swept.deleted)
  expect(before.bytes).toBe(wrote.createdBytes - swept.bytesDeleted)
  for (const name of ['first', 'second']) {
    const { failed, aborted } = await last.ask<Sweep>('sweep')
    expect({ name, failed, aborted }).toEqual({ name, failed: [], aborted: undefined })
  }
  const after = await last.ask<Usage>('usage')
  expect(after).toMatchObject({ entries: wrote.referenced.length, window: 0, pins: 0, stages: 0, trash: 0 })
  expect(await last.ask('verify')).toMatchObject({ clean: true, entries: wrote.referenced.length })
  expect(await last.ask('files')).toEqual({ bodies: after.perTier.large.entries, stages: 0 })
  await last.finish()
})

// O11: put and execution of the same candidate at the same moment, each asked first in turn.
it.each([900, LARGE])(
  'keeps %i bytes that are put while another process executes their candidate, 100 times',
  {
    timeout: LIMIT_MS
  },
  async length => {
    const folder = await temporaryFolder()
    const [writer, sweeper] = (await agents(folder, 2)) as [Agent, Agent]
    const content = { name: 'contended', length }
    const counts = { created: 0, rescued: 0 }
    await release(writer, await writer.ask<Held>('put', content))
    for (let round = 0; round < 100; round++) {
      const put = () => writer.ask<Held>('put', { ...content, streamed: round % 4 < 2 })
      const sweep = () => sweeper.ask<Sweep>('sweep', { keys: [] })
      await writer.ask('flush')
      expect(await sweep()).toMatchObject({ candidatesStaged: 1, deleted: 0 })
      const both = round % 2 === 0 ? [put(), sweep()] : [sweep(), put()].reverse()
      const [held, executed] = (await Promise.all(both)) as [Held, Sweep]
      expect(await writer.ask('get', { key: held.key, ...content })).toBe('same')
      // Whoever came first, the two agree on it.
      expect(executed.deleted + executed.cancelledByArbitration).toBe(1)
      expect(held.created).toBe(executed.deleted === 1)
      counts[held.created ? 'created' : 'rescued']++
      await release(writer, held)
    }
    report(`O11, ${length} bytes: ${JSON.stringify(counts)}`)
    expect(Math.min(counts.created, counts.rescued)).toBeGreaterThan(0)
    expect(await writer.ask('verify')).toMatchObject({ clean: true, entries: 1 })
    for (const agent of [writer, sweeper]) await agent.finish()
  }
)

async function release(agent: Agent, { pin }: Held): Promise<void> {
  await agent.ask('release', { pin })
}

// O09: the first process has seen the blob in every way there is; the second takes it away; the first puts it again.
it.each([900, LARGE])('stores %i bytes again after another process swept or deleted them', async length => {
  const folder = await temporaryFolder()
  const [one, other] = (await agents(folder, 2)) as [Agent, Agent]
  const content = { name: 'long known', length }
  const takes = [
    async () => {
      for (const deleted of [0, 1]) expect(await other.ask('sweep', { keys: [] })).toMatchObject({ deleted })
    },
    async (key: string) => expect(await other.ask('delete', { key })).toBe(true)
  ]
  for (const [round, take] of takes.entries()) {
    const first = await one.ask<Held>('put', content)
    expect(first.created).toBe(round === 0)
    expect(await one.ask('get', { key: first.key, ...content })).toBe('same')
    expect(await one.ask('stat', { key: first.key })).toMatchObject({ length })
    await release(one, first)
    await one.ask('flush')
    await take(first.key)
    expect(await one.ask('get', { key: first.key, ...content })).toBe('absent')
    const again = await one.ask<Held>('put', content)
    expect(again.created).toBe(true)
    const [third] = (await agents(folder, 1)) as [Agent]
    expect(await third.ask('get', { key: again.key, ...content })).toBe('same')
    await third.finish()
    await release(one, again)
  }
  for (const agent of [one, other]) await agent.finish()
})

// O10: a put without a pin starts the window anew, so the reference may come later than the next sweep.
it.each([900, LARGE])('gives %i bytes a new window when they are put again without a pin', async length => {
  const folder = await temporaryFolder()
  const windowDelayMs = 3_600_000
  const [writer, sweeper] = (await agents(folder, 2, { windowDelayMs })) as [Agent, Agent]
  const content = { name: 'old and dead', length, options: { pin: false } }
  const { key } = await writer.ask<Held>('put', content)
  expect(await sweeper.ask('sweep')).toMatchObject({ candidatesStaged: 1 })
  await sweeper.ask('age', { ms: windowDelayMs })
  expect((await writer.ask<Held>('put', content)).created).toBe(false)
  expect(await sweeper.ask('sweep')).toMatchObject({ deleted: 0, cancelledByArbitration: 1, candidatesStaged: 1 })
  await writer.ask('reference', { key })
  await sweeper.ask('age', { ms: windowDelayMs })
  expect(await sweeper.ask('sweep')).toMatchObject({ deleted: 0, cancelledByArbitration: 1, live: 1 })
  expect(await writer.ask('get', { key, ...content })).toBe('same')
  for (const agent of [writer, sweeper]) await agent.finish()
})

// O01: the reference is written and the pin released between the source's answer and everything the sweep does after it.
it.each(['pin', 'put'])('keeps what was handed from a %s to a reference behind the back of the source', async by => {
  const folder = await temporaryFolder()
  const [writer, sweeper] = (await agents(folder, 2)) as [Agent, Agent]
  const content = { name: 'handed over', length: LARGE }
  const first = await writer.ask<Held>('put', content)
  const { key } = first
  await release(writer, first)
  await writer.ask('flush')
  expect(await sweeper.ask('sweep')).toMatchObject({ candidatesStaged: 1 })
  const held = by === 'pin' ? await writer.ask<number>('pin', { key }) : (await writer.ask<Held>('put', content)).pin
  const barrier = sweeper.barrier()
  const sweeping = sweeper.ask<Sweep>('sweep', { barrier: true })
  await barrier
  await writer.ask('reference', { key })
  await writer.ask('release', { pin: held })
  await writer.ask('flush')
  await sweeper.ask('go')
  expect(await sweeping).toMatchObject({ deleted: 0, cancelledByArbitration: 1 })
  expect(await sweeper.ask('sweep')).toMatchObject({ deleted: 0 })
  expect(await writer.ask('get', { key, ...content })).toBe('same')
  for (const agent of [writer, sweeper]) await agent.finish()
})

// O01, the other order: pin and reference both come after the answer of the source.
it('keeps what was pinned, referenced and released while the source made up its answer', async () => {
  const folder = await temporaryFolder()
  const [writer, sweeper] = (await agents(folder, 2)) as [Agent, Agent]
  const content = { name: 'quick', length: LARGE }
  await release(writer, await writer.ask<Held>('put', content))
  await writer.ask('flush')
  expect(await sweeper.ask('sweep')).toMatchObject({ candidatesStaged: 1 })
  const barrier = sweeper.barrier()
  const sweeping = sweeper.ask<Sweep>('sweep', { barrier: true })
  await barrier
  const held = await writer.ask<Held>('put', content)
  await writer.ask('reference', { key: held.key })
  await release(writer, held)
  await writer.ask('flush')
  await sweeper.ask('go')
  expect(await sweeping).toMatchObject({ deleted: 0, cancelledByArbitration: 1 })
  expect(await sweeper.ask('sweep')).toMatchObject({ deleted: 0, live: 1 })
  expect(await writer.ask('get', { key: held.key, ...content })).toBe('same')
  for (const agent of [writer, sweeper]) await agent.finish()
})
