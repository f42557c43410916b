// One process among several on one schema. Imports the package as it is published, so it needs a build.
import { randomBytes } from 'node:crypto'
import { postgres } from '@alkblobs/engine-postgres'

const [url, schema, work, name] = process.argv.slice(2)
const call = () => ({ deadlineMs: performance.now() + 20_000 })
const engine = await postgres({ url, schema, poolMax: 6 }).open({
  algorithm: 'blake3',
  lockTimeoutMs: 15_000,
  connectTimeoutMs: 10_000
})
const { catalog } = engine
const record = { poolId: `pool-${name}`, protocol: 1, algorithm: 'blake3', windowDelayMs: 0, bodiesClaimed: false }
const keyOf = n => `blake3:${n.toString(16).padStart(64, '0')}`
const say = message => process.send(message)

const put = (n, body) => {
  const pin = { row: { owner: name, generation: n + 1 }, ttlMs: 60_000 }
  const item = { key: keyOf(n), length: body.length, bytes: { kind: 'inline', body }, trashDelayMs: 0, pin }
  return catalog.publish([item], call()).then(([{ outcome }]) => outcome)
}

const jobs = {
  async create() {
    say({ won: await catalog.meta.compareAndSet(undefined, record, call()) })
  },
  /** Puts, pins, releases and deletes the same hundred keys as everybody else; counts what it did. */
  async hammer() {
    let [created, deleted, longestMs] = [0, 0, 0]
    const begun = performance.now()
    const writer = async () => {
      for (let i = 0; i < 100; i++) {
        const n = Math.floor(Math.random() * 100)
        const started = performance.now()
        if ((await put(n, randomBytes(2_000))) === 'created') created++
        await catalog.release([{ key: keyOf(n), pin: { owner: name, generation: n + 1 } }], call())
        const marked = await catalog.mark(keyOf(n), call())
        if (typeof marked === 'object') {
          const item = { kind: 'marked', key: keyOf(n), mark: marked.mark, live: false }
          const [{ outcome }] = await catalog.remove([item], 0, undefined, call())
          if (outcome === 'deleted') deleted++
        }
        longestMs = Math.max(longestMs, performance.now() - started)
      }
    }
    await Promise.all([writer(), writer(), writer(), writer()])
    say({ created, deleted, longestMs, tookMs: performance.now() - begun })
  },
  async lease() {
    const lease = await catalog.lease(call())
    say({ held: lease !== undefined })
    await new Promise(resolve => process.once('message', resolve))
    await lease?.release()
  }
}

say('ready')
await new Promise(resolve => process.once('message', resolve))
try {
  await jobs[work]()
} catch (error) {
  say({ error: `${engine.classify(error)}: ${error.message}` })
}
await engine.close()
process.disconnect()
