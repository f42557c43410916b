/** Processes and sessions that die between any two statements of a transaction with puts, or in its COMMIT: both or neither is there. */
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import { pgAdmin, rowBarrier, terminateBackend } from '@alkblobs/faults'
import { noServer } from '@alkblobs/testkit'
import { beforeAll, describe, expect, it, onTestFinished } from 'vitest'
import { Bench, KINDS, type Kind } from './joined-stores.js'

const worker = fileURLToPath(new URL('./workers/joining.mjs', import.meta.url))
const built = fileURLToPath(new URL('../../../core/dist/index.js', import.meta.url))
const LIMIT_MS = 30_000
/** BEGIN, three to join, two for each put and one more for long bytes at hand, two rows, COMMIT. Memory of long ones aside. */
const STATEMENTS = { 'postgres + local': 12, 'kv-only': 11, 'postgres + pglo': 12 } as const

type Way = 'SIGKILL' | 'terminate'

/** Runs the worker; resolves with how many statements it came to say, if it came to its end. */
async function run(bench: Bench, stopAt: number, way: Way): Promise<number | undefined> {
  const released = join(bench.place.root, '..', `released-${stopAt}`)
  const given = JSON.stringify({ place: bench.place, stopAt, way, released, seed: stopAt })
  const child = spawn(process.execPath, [worker, given], { stdio: ['ignore', 'pipe', 'pipe'] })
  const late = setTimeout(() => child.kill('SIGKILL'), LIMIT_MS)
  onTestFinished(() => void child.kill('SIGKILL'))
  let statements: number | undefined
  let errors = ''
  child.stderr.on('data', chunk => {
    errors += chunk
  })
  const closed = once(child, 'close')
  for await (const line of createInterface(child.stdout)) {
    const said = JSON.parse(line) as { stopped?: boolean; statements?: number }
    statements = said.statements
    if (said.stopped !== true) continue
    const ended = await bench.query(
      "SELECT pg_terminate_backend(pid, 5000) AS gone FROM pg_stat_activity WHERE application_name = 'victim'"
    )
    expect(ended).toEqual([{ gone: true }])
    writeFileSync(released, '')
  }
  const [code, signal] = await closed
  clearTimeout(late)
  if (way === 'SIGKILL' && statements === undefined)
    expect({ code, signal, errors }).toEqual({ code: null, signal: 'SIGKILL', errors: '' })
  return statements
}

/** Until no session of the process is left: what it was about to commit is committed or not. */
async function gone(bench: Bench): Promise<void> {
  const left = "SELECT 1 FROM pg_stat_activity WHERE datname = current_database() AND application_name = 'victim'"
  while ((await bench.query(left)).length > 0) await new Promise(resolve => setTimeout(resolve, 10))
}

/**
 * Lets the worker send its COMMIT, and holds the session in it: the rows and entries are made, and the answer is not sent. Then the process is
 * killed, and the server goes on; or the session is ended, and the process hears that it is.
 */
async function dieInCommit(kind: Kind, way: Way): Promise<void> {
  const bench = await Bench.of(kind, { stageTtlMs: 300 })
  await (await bench.store.put(Buffer.from('the pool is there'))).release()
  const [first] = await bench.entries()
  const admin = await pgAdmin(bench.place.url)
  onTestFinished(() => admin.close())
  const barrier = await rowBarrier(admin, { schema: 'public', table: 'files', event: 'INSERT', at: 'commit' })
  onTestFinished(() => barrier.open())
  const given = JSON.stringify({ place: bench.place, stopAt: 0, way, seed: 1 })
  const child = spawn(process.execPath, [worker, given], { stdio: 'ignore' })
  onTestFinished(() => void child.kill('SIGKILL'))
  const closed = once(child, 'close')
  const pid = await barrier.reached(20_000)
  const [session] = await bench.query('SELECT query, state FROM pg_stat_activity WHERE pid = $1', [pid])
  expect(session).toEqual({ query: 'commit', state: 'active' })
  if (way === 'SIGKILL') child.kill('SIGKILL')
  else await terminateBackend(admin, pid)
  const [code, signal] = await closed
  if (way === 'SIGKILL') expect(signal).toBe('SIGKILL')
  // Its application did not catch what the driver told it.
  else expect(code).toBe(1)
  expect([await bench.files(), await bench.entries()]).toEqual([[], [first]])
  await barrier.open()
  await gone(bench)
  const files = await bench.files()
  expect(files).toHaveLength(way === 'SIGKILL' ? 2 : 0)
  expect(await bench.entries()).toEqual([...files, first].sort())
  const maintained = async () => {
    await bench.store.maintain()
    return bench.left()
  }
  await expect.poll(maintained, { timeout: 5_000 }).toEqual({ stages: 0, trash: 0, window: 0 })
  expect(await bench.store.verify()).toMatchObject({ entries: files.length + 1, clean: true })
}

async function tryAll(kind: Kind, way: Way): Promise<void> {
  const bench = await Bench.of(kind, { stageTtlMs: 300 })
  await (await bench.store.put(Buffer.from('the pool is there'))).release()
  const [first] = await bench.entries()
  const last = STATEMENTS[kind]
  for (let stopAt = 1; stopAt <= last; stopAt++) {
    expect(await run(bench, stopAt, way), `statement ${stopAt}`).toBeUndefined()
    await gone(bench)
    // None of its statements was a commit that was sent.
    expect([await bench.files(), await bench.entries()], `statement ${stopAt}`).toEqual([[], [first]])
  }
  expect(await run(bench, last + 1, way)).toBe(last)
  const files = await bench.files()
  expect(files).toHaveLength(2)
  expect(await bench.entries()).toEqual([...files, first].sort())
  const maintained = async () => {
    await bench.store.maintain()
    return bench.left()
  }
  await expect.poll(maintained, { timeout: 5_000 }).toEqual({ stages: 0, trash: 0, window: 0 })
  expect(await bench.store.verify()).toMatchObject({ entries: 3, clean: true })
}

describe.skipIf(noServer() !== undefined)('a transaction with puts, all or nothing', () => {
  beforeAll(() => {
    if (!existsSync(built)) throw new Error('build the packages first: the child imports what is published')
  })

  it.each(KINDS)('when its process is killed before any statement (%s)', kind => tryAll(kind, 'SIGKILL'), 180_000)

  it.each(KINDS)('when its process is killed while its COMMIT is on its way (%s)', kind => dieInCommit(kind, 'SIGKILL'))

  it.each(KINDS)('when its session is ended in its COMMIT (%s)', kind => dieInCommit(kind, 'terminate'))

  it('when its session is ended before any statement', () => tryAll('postgres + local', 'terminate'), 180_000)
})
