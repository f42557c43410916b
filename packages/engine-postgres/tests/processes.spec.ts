import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import type { TestSchema } from '@alkblobs/testkit'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { call, describeServer, eventually, openPool, place } from './fixture.js'

const child = fileURLToPath(new URL('./children/child.mjs', import.meta.url))
const built = fileURLToPath(new URL('../dist/index.js', import.meta.url))

type Answer = Record<string, unknown>

/** How the server lists the sessions of a process. */
const nameOf = ({ schema }: { readonly schema: string }, name: string) => `${schema}.${name}`

/** Starts a process and waits until it has the engine open. */
async function start({ url, schema }: TestSchema, work: string, name: string): Promise<ChildProcess> {
  const started = fork(child, [`${url}?application_name=${nameOf({ schema }, name)}`, schema, work, name])
  onTestFinished(() => void started.kill('SIGKILL'))
  await once(started, 'message')
  return started
}

/** What a busy machine needs to start a dozen processes comes on top of what they do. */
const TIMEOUT_MS = 90_000

async function go(process: ChildProcess): Promise<Answer> {
  const answer = once(process, 'message')
  process.send('go')
  return (await answer)[0] as Answer
}

describeServer(
  'several processes on one schema',
  () => {
    beforeAll(() => {
      if (!existsSync(built)) throw new Error('build the package first: its children import what is published')
    })

    test('make the pool together: ten at once, one record, no error', async () => {
      const at = await place()
      const processes = await Promise.all(Array.from({ length: 10 }, (_, n) => start(at, 'create', `p${n}`)))
      const answers = await Promise.all(processes.map(go))
      expect(answers.filter(({ won }) => won === true)).toHaveLength(1)
      expect(answers.filter(({ won }) => won === false)).toHaveLength(9)
    })

    test('write together: nobody is told of a lock, nobody starves, and the effects add up', async () => {
      const at = await place()
      await openPool(at)
      const processes = await Promise.all(['a', 'b', 'c'].map(name => start(at, 'hammer', name)))
      const answers = (await Promise.all(processes.map(go))) as {
        created: number
        deleted: number
        longestMs: number
        tookMs: number
        error?: string
      }[]
      expect(answers.map(({ error }) => error)).toEqual([undefined, undefined, undefined])
      const sum = (name: 'created' | 'deleted') => answers.reduce((n, answer) => n + answer[name], 0)
      const left = `SELECT (SELECT count(*)::int FROM ${at.schema}.entries) AS entries,
      (SELECT count(*)::int FROM ${at.schema}.gc_pins) AS pins`
      expect(await at.query(left)).toEqual([{ entries: sum('created') - sum('deleted'), pins: 0 }])
      // Each of a hundred turns is a small part of the whole, however long that takes here.
      for (const { longestMs, tookMs } of answers) expect(longestMs).toBeLessThan(tookMs / 4)
    })

    test('hold the lease one at a time, and a killed holder frees it', async () => {
      const at = await place()
      const { catalog } = await openPool(at)
      const [one, two] = [await start(at, 'lease', 'a'), await start(at, 'lease', 'b')]
      expect(await go(one)).toEqual({ held: true })
      expect(await go(two)).toEqual({ held: false })
      expect(await catalog.lease(call())).toBeUndefined()
      const exited = once(one, 'exit')
      one.kill('SIGKILL')
      await exited
      // The server frees the lock when it has noticed the end of the connection.
      await eventually('the lease is free', async () => (await catalog.lease(call())) !== undefined)
    })

    test('killed in the middle of writing leave a whole pool that others go on with', async () => {
      const at = await place()
      const { catalog } = await openPool(at)
      for (let round = 0; round < 3; round++) {
        const victim = await start(at, 'hammer', `v${round}`)
        victim.send('go')
        const busy = 'SELECT 1 FROM pg_stat_activity WHERE application_name = $1 AND xact_start IS NOT NULL'
        await eventually('it writes', async () => (await at.query(busy, [nameOf(at, `v${round}`)])).length > 0)
        const exited = once(victim, 'exit')
        victim.kill('SIGKILL')
        await exited
      }
      const hammer = await start(at, 'hammer', 'last')
      expect(await go(hammer)).not.toHaveProperty('error')
      expect(await catalog.lease(call())).toBeDefined()
      const torn = `SELECT count(*)::int AS n FROM ${at.schema}.entries WHERE octet_length(body) <> length`
      expect(await at.query(torn)).toEqual([{ n: 0 }])
    })
  },
  { timeoutMs: TIMEOUT_MS }
)
