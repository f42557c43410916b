// What the tests run in other processes; `processes.ts` bundles it. Answers on stdout, one line each.
import type { PoolId } from '@alkblobs/core/engine'
import { local } from '../src/index.js'

const [task, root = '', name = ''] = process.argv.slice(2)
const call = { deadlineMs: Number.POSITIVE_INFINITY }
const engine = await local({ root }).open({ algorithm: 'sha256', lockTimeoutMs: 1, connectTimeoutMs: 1 })
const bodies = engine.bodies
if (bodies === undefined) throw new Error('the engine keeps bodies')

const say = (answer: unknown) => process.stdout.write(`${JSON.stringify(answer)}\n`)
const hold = () => setInterval(() => {}, 60_000)

if (task === 'claim') {
  say(await bodies.claim({ poolId: name as PoolId, mode: 'shared' }, call))
} else if (task === 'hold') {
  say(await bodies.claim({ poolId: name as PoolId, mode: 'exclusive' }, call))
  hold()
} else if (task === 'pass on') {
  // Takes the lock as often as it can, and says so around the time in which it holds it.
  for (let turns = 0; turns < 20; ) {
    const next = await local({ root }).open({ algorithm: 'sha256', lockTimeoutMs: 1, connectTimeoutMs: 1 })
    const claim = await next.bodies?.claim({ poolId: name as PoolId, mode: 'exclusive' }, call)
    if (claim === 'held') continue
    const from = process.hrtime.bigint().toString()
    await new Promise(resolve => setTimeout(resolve, 2))
    say({ from, to: process.hrtime.bigint().toString() })
    await next.close()
    turns += 1
  }
} else if (task === 'fill') {
  await bodies.claim({ poolId: name as PoolId, mode: 'shared' }, call)
  try {
    const writer = await bodies.create('0'.repeat(32) as never, {}, call)
    try {
      for (let written = 0; written < 8; written++) await writer.write(new Uint8Array(1024 * 1024))
      await writer.seal(`sha256:${'0'.repeat(64)}` as never)
      say('sealed')
    } catch (error) {
      await writer.discard()
      throw error
    }
  } catch (error) {
    say({ kind: engine.classify(error), code: (error as NodeJS.ErrnoException).code })
  }
} else if (task === 'exhaust') {
  // Opens writers until the system refuses, then puts everything away.
  await bodies.claim({ poolId: name as PoolId, mode: 'shared' }, call)
  const writers = []
  try {
    for (let n = 0; n < 64; n++) writers.push(await bodies.create(n.toString(16).padStart(32, '0') as never, {}, call))
  } catch (error) {
    for (const writer of writers) await writer.discard()
    say({ kind: engine.classify(error), code: (error as NodeJS.ErrnoException).code, opened: writers.length })
  }
}
