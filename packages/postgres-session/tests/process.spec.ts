import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { startServer, type TestServer } from '@alkblobs/testkit'
import { beforeAll, expect, onTestFinished, test } from 'vitest'
import { call, codeOf, describeWithServer, eventually, expectWorking, sessions, sleep } from './fixture.js'
import { Wire } from './wire.js'

const child = fileURLToPath(new URL('./children/faults.mjs', import.meta.url))
const built = fileURLToPath(new URL('../dist/index.js', import.meta.url))

async function server(): Promise<TestServer> {
  const started = await startServer()
  onTestFinished(() => started.release())
  return started
}

interface Running {
  readonly process: ChildProcess
  /** How many calls ended so, once each of these has happened since the last look. */
  counts(): Promise<Record<string, number>>
}

async function run(url: string): Promise<Running> {
  const started = fork(child, [url], { stdio: ['ignore', 'ignore', 'pipe', 'ipc'] })
  let said = ''
  started.stderr?.on('data', chunk => {
    said += chunk
  })
  onTestFinished(() => void started.kill('SIGKILL'))
  started.once('exit', code => code !== 0 && process.stderr.write(said))
  await once(started, 'message')
  return {
    process: started,
    async counts() {
      const answer = once(started, 'message')
      started.send('count')
      return (await answer)[0] as Record<string, number>
    }
  }
}

/** Waits until calls succeed again. */
async function expectProgress({ counts }: Running): Promise<void> {
  const before = (await counts()).done ?? 0
  await eventually('calls succeed again', async () => ((await counts()).done ?? 0) > before + 5)
}

/** It ends by itself, with everything settled and nothing left that keeps it alive. */
async function expectGoodEnd({ process: running }: Running): Promise<Record<string, number>> {
  const answer = once(running, 'message')
  const exit = once(running, 'exit')
  running.send('end')
  const [counts] = (await answer) as [Record<string, number>]
  // Long enough for a busy machine, and shorter than anything that would end by itself and keep the process until then.
  const late = setTimeout(() => running.kill('SIGKILL'), 10_000)
  const [code, signal] = await exit
  clearTimeout(late)
  expect({ code, signal }).toEqual({ code: 0, signal: null })
  return counts
}

describeWithServer('a process', () => {
  beforeAll(() => {
    if (!existsSync(built)) throw new Error('build the package first: its children import what is published')
  })

  test('lives through a server that is stopped, killed and started again', async () => {
    const under = await server()
    const running = await run(under.url)
    await expectProgress(running)
    for (const stop of ['restart', 'kill', 'crash'] as const) {
      if (stop === 'restart') await under.restart()
      else await under.kill(stop === 'kill' ? 'SIGKILL' : 'SIGQUIT')
      await sleep(100)
      await under.start()
      await expectProgress(running)
    }
    const counts = await expectGoodEnd(running)
    expect(counts.transient ?? 0).toBeGreaterThan(0)
    expect(counts.unknown ?? 0).toBe(0)
  })

  test('lives through backends that are killed and connections that are cut, by the hundred', async () => {
    const under = await server()
    const wire = await Wire.to(under)
    const running = await run(under.url.replace(`:${under.port}/`, `:${wire.port}/`))
    await expectProgress(running)
    const eye = sessions({ url: under.url, applicationName: 'eye' })
    const victims = `SELECT pg_terminate_backend(pid) FROM pg_stat_activity
      WHERE application_name = 'alkblobs' AND random() < 0.5`
    const failures = async () => (await running.counts()).transient ?? 0
    for (let round = 0; round < 60 || (await failures()) <= 30; round++) {
      await sleep(20)
      if (round % 3 === 0) await eye.use(call(), session => session.rows(victims))
      else if (round % 3 === 1) wire.reset()
      else wire.hangUp()
    }
    await expectProgress(running)
    const counts = await expectGoodEnd(running)
    expect(counts.transient ?? 0).toBeGreaterThan(30)
    expect(counts.unknown ?? 0).toBe(0)
  })
})

describeWithServer('a server', () => {
  test('that is down refuses within the deadline, and is found again when it is up', async () => {
    const under = await server()
    const over = sessions({ url: under.url })
    await expectWorking(over)
    const held = await over.hold(call())
    await under.stop()
    expect(await codeOf(held.rows('SELECT 1'))).toBe('transient')
    expect(await codeOf(over.use(call(), session => session.rows('SELECT 1')))).toBe('transient')
    expect(await codeOf(over.transaction(call(), session => session.rows('SELECT 1')))).toBe('transient')
    await under.start()
    await expectWorking(over)
  })
})
