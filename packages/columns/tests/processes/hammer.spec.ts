// Two processes of four threads each, all over one pool: joined commits, locks and names under as much contention as there is.
import { expect, it } from 'vitest'
import { Agent, Child, report, temporaryFolder } from './children.js'

const LIMIT_MS = 180_000
const PROCESSES = 2
const THREADS = 4
const LARGE = 20_000
/** Of every pool of the workers. */
const THRESHOLD = 4_096

type Counts = Record<string, number>

/** Runs one task in every thread, begun together, and adds up what they counted. */
async function hammer(given: object): Promise<Counts> {
  const options = { given: { ...given, threads: THREADS }, limitMs: LIMIT_MS }
  const children = Array.from({ length: PROCESSES }, () => new Child('hammer.mjs', options))
  for (const child of children) await child.next()
  const start = performance.now()
  for (const child of children) child.tell()
  const sums: Counts = {}
  for (const child of children) {
    const { results } = await child.next<{ results: Counts[] }>()
    for (const counts of results)
      for (const [name, count] of Object.entries(counts)) sums[name] = (sums[name] ?? 0) + count
    await child.finish()
  }
  report(`hammer: ${JSON.stringify({ ...given, folder: '', ...sums, seconds: (performance.now() - start) / 1_000 })}`)
  return sums
}

async function lookAfter(folder: string): Promise<Agent> {
  const agent = new Agent(folder, LIMIT_MS)
  await agent.ask('open')
  return agent
}

// O39: the same bodies under the same keys at the same time; one of each stays.
it('keeps one file for each of 200 contents that 8 threads in 2 processes put at once', {
  timeout: LIMIT_MS
}, async () => {
  const folder = await temporaryFolder()
  const contents = 200
  const sums = await hammer({ folder, task: 'sameContents', contents, length: LARGE, lanes: 8 })
  expect(sums).toEqual({ puts: contents * PROCESSES * THREADS, created: contents })
  const agent = await lookAfter(folder)
  expect(await agent.ask('rows')).toMatchObject({ entries: contents, gc_pins: 0, stages: 0, trash: 0 })
  expect(await agent.ask('files')).toEqual({ bodies: contents, stages: 0 })
  expect(await agent.ask('verify')).toMatchObject({ clean: true, entries: contents, bytes: contents * LARGE })
  await agent.finish()
})

// O35, O14: all of it reads, then writes; no lock of another reaches a caller, and created less deleted is what is there.
it.each([
  { length: 900, rounds: 500 },
  { length: LARGE, rounds: 50 }
])(
  'adds up over $rounds puts, pins and deletes of $length bytes by 8 writers in 2 processes',
  {
    timeout: LIMIT_MS
  },
  async ({ length, rounds }) => {
    const folder = await temporaryFolder()
    const sums = await hammer({ folder, task: 'putPinDelete', contents: 40, length, rounds, lanes: 10 })
    const each = rounds * PROCESSES * THREADS
    const { puts, pins, created = 0, deleted = 0, absent = 0, refused = 0 } = sums
    expect({ puts, pins, deletes: deleted + absent + refused }).toEqual({ puts: each, pins: each, deletes: each })
    // The writers must have been in each other's way.
    expect(Math.min(deleted, refused)).toBeGreaterThan(0)
    const agent = await lookAfter(folder)
    const entries = created - deleted
    const files = length > THRESHOLD ? entries : 0
    const rows = { entries, bodies: entries - files, gc_pins: 0, gc_window: 0, stages: 0, trash: 0 }
    expect(await agent.ask('rows')).toEqual(rows)
    expect(await agent.ask('files')).toEqual({ bodies: files, stages: 0 })
    expect(await agent.ask('verify')).toMatchObject({ clean: true, entries, bytes: entries * length })
    await agent.finish()
  }
)
