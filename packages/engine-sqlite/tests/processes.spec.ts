import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { beforeAll, describe, expect, onTestFinished, test } from 'vitest'
import { call, folder, openFile, openPool, sleep } from './fixture.js'

const child = fileURLToPath(new URL('./children/child.mjs', import.meta.url))
const built = fileURLToPath(new URL('../dist/index.js', import.meta.url))

beforeAll(() => {
  if (!existsSync(built)) throw new Error('build the package first: its children import what is published')
})

type Answer = Record<string, unknown>

/** Starts a process and waits until it has the engine open. */
async function start(file: string, work: string, name: string): Promise<ChildProcess> {
  const started = fork(child, [file, work, name])
  onTestFinished(() => void started.kill('SIGKILL'))
  await once(started, 'message')
  return started
}

async function go(process: ChildProcess): Promise<Answer> {
  const answer = once(process, 'message')
  process.send('go')
  return (await answer)[0] as Answer
}

describe('several processes on one file', () => {
  test('make the pool together: ten at once, one record, no error', async () => {
    const file = join(folder(), 'new', 'pool.db')
    const processes = await Promise.all(Array.from({ length: 10 }, (_, n) => start(file, 'create', `p${n}`)))
    const answers = await Promise.all(processes.map(go))
    expect(answers.filter(({ won }) => won === true)).toHaveLength(1)
    expect(answers.filter(({ won }) => won === false)).toHaveLength(9)
  })

  test('write together: nobody is told that the file is busy, nobody starves, and the effects add up', async () => {
    const { file, sql } = await openPool()
    const processes = await Promise.all(['a', 'b', 'c'].map(name => start(file, 'hammer', name)))
    const answers = (await Promise.all(processes.map(go))) as {
      created: number
      deleted: number
      longestMs: number
      error?: string
    }[]
    expect(answers.map(({ error }) => error)).toEqual([undefined, undefined, undefined])
    const [created, deleted] = [answers.reduce((n, a) => n + a.created, 0), answers.reduce((n, a) => n + a.deleted, 0)]
    const left =
      'SELECT (SELECT count(*) FROM entries) AS entries, (SELECT count(*) FROM bodies) AS bodies, (SELECT count(*) FROM gc_pins) AS pins'
    expect(sql(left)).toEqual([{ entries: created - deleted, bodies: created - deleted, pins: 0 }])
    expect(sql('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
    for (const { longestMs } of answers) expect(longestMs).toBeLessThan(10_000)
  })

  test('hold the lease one at a time, and a killed holder frees it', async () => {
    const { file, catalog } = await openPool()
    const [one, two] = [await start(file, 'lease', 'a'), await start(file, 'lease', 'b')]
    expect(await go(one)).toEqual({ held: true })
    expect(await go(two)).toEqual({ held: false })
    expect(await catalog.lease(call())).toBeUndefined()
    const exited = once(one, 'exit')
    one.kill('SIGKILL')
    await exited
    expect(await catalog.lease(call())).toBeDefined()
  })

  test('ask for the lease at the same moment, and exactly one gets it', async () => {
    const { file } = await openPool()
    const processes = await Promise.all(['a', 'b', 'c', 'd'].map(name => start(file, 'lease', name)))
    const answers = await Promise.all(processes.map(go))
    expect(answers.filter(({ held }) => held)).toHaveLength(1)
  })

  test('killed in the middle of writing leave a whole pool that others go on with', async () => {
    const { file, sql } = await openPool()
    for (let round = 0; round < 3; round++) {
      const victim = await start(file, 'hammer', `v${round}`)
      victim.send('go')
      await sleep(20 + 30 * round)
      const exited = once(victim, 'exit')
      victim.kill('SIGKILL')
      await exited
      expect(sql('PRAGMA integrity_check')).toEqual([{ integrity_check: 'ok' }])
      const orphans = 'SELECT count(*) AS n FROM bodies b LEFT JOIN entries e ON e.id = b.id WHERE e.key IS NULL'
      expect(sql(orphans)).toEqual([{ n: 0 }])
    }
    const { catalog } = await openFile(file)
    expect(await catalog.lease(call())).toBeDefined()
  })
})
