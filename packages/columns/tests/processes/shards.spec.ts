// Bodies come and go in sixteen shards, while a sweeper removes bodies and every shard that this leaves empty.
import { expect, it } from 'vitest'
import { Agent, Child, report, temporaryFolder } from './children.js'

const LIMIT_MS = 180_000
const PUTS = 1_000

// O44: no ENOENT reaches the caller of a put, and no blob is lost.
it('loses nothing of 1,000 puts into shards that are emptied and removed under them', {
  timeout: LIMIT_MS
}, async () => {
  const folder = await temporaryFolder()
  const writer = new Child('shard-writer.mjs', { given: { folder, puts: PUTS, lanes: 8 }, limitMs: LIMIT_MS })
  await writer.next()
  const sweeper = new Child('sweeper.mjs', { given: { folder, removeShards: true }, limitMs: LIMIT_MS })
  await sweeper.next()
  writer.tell()
  const wrote = await writer.next<{
    puts: number
    created: number
    referenced: { key: string; name: string; length: number }[]
  }>()
  await writer.finish()
  sweeper.tell()
  const swept = await sweeper.next<{
    removed: number
    staged: number
    deleted: number
    cancelled: number
    failed: number
    window: number
  }>()
  await sweeper.finish()
  report(`shards: ${JSON.stringify(swept)}`)

  expect(wrote).toMatchObject({ puts: PUTS, created: PUTS + 1 })
  // There must have been something in the way: bodies swept and shards removed.
  expect(Math.min(swept.removed, swept.deleted)).toBeGreaterThan(20)
  expect(swept.staged).toBe(swept.deleted + swept.cancelled + swept.window)
  expect(swept.failed).toBe(0)

  const agent = new Agent(folder, LIMIT_MS)
  await agent.ask('open')
  const reads = await Promise.all(wrote.referenced.map(reference => agent.ask('get', reference)))
  expect(reads.filter(read => read !== 'same')).toEqual([])
  for (const name of ['staging', 'removing']) {
    const { failed } = await agent.ask<{ failed: unknown[] }>('sweep')
    expect({ name, failed }).toEqual({ name, failed: [] })
  }
  const entries = wrote.referenced.length
  expect(await agent.ask('rows')).toMatchObject({ entries, gc_pins: 0, gc_window: 0, stages: 0, trash: 0 })
  expect(await agent.ask('files')).toEqual({ bodies: entries, stages: 0 })
  expect(await agent.ask('verify')).toMatchObject({ clean: true, entries })
  await agent.finish()
})
