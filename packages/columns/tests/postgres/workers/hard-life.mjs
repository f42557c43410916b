// A process that does everything a store can do, all the time, while its server and the way to it are treated badly. Whatever is
// thrown outside of a promise ends it, as it would end an application.
import { createHash } from 'node:crypto'
import { setTimeout as passed } from 'node:timers/promises'
import { openStore } from '@alkblobs/core'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'
import { given, heard, say } from '../../processes/workers/pool.mjs'

const { url, schema, timeoutMs } = given
const stderr = []
process.stderr.write = text => stderr.push(String(text)) > 0

const store = await openStore({
  kv: postgres({ url, schema, poolMax: 6 }),
  large: pglo({ url, poolMax: 6 }),
  threshold: 4_096,
  windowDelayMs: 0,
  trashDelayMs: 0,
  operationTimeoutMs: timeoutMs,
  connectTimeoutMs: timeoutMs,
  lockTimeoutMs: timeoutMs
})
const live = new Set()
store.protect({ name: 'documents', live: () => live })

const ends = {}
const odd = []
const successes = {}
let isOver = false
let count = 0

function contentOf(name, length) {
  return createHash('shake256', { outputLength: length }).update(name).digest()
}

async function* streamOf(bytes) {
  for (let at = 0; at < bytes.length; at += 70_001) yield bytes.subarray(at, at + 70_001)
}

/** Puts, reads back what was acknowledged, and takes it away again; a put that was acknowledged must be there. */
async function roundTrip(length) {
  const bytes = contentOf(`${process.pid} ${++count}`, length)
  const receipt = await store.put(length > 4_096 ? streamOf(bytes) : bytes)
  live.add(receipt.key)
  await receipt.release()
  const found = await (await store.get(receipt.key))?.bytes()
  if (found === undefined || bytes.compare(found) !== 0)
    throw new TypeError(`${receipt.key} was acknowledged and is not there`)
  live.delete(receipt.key)
  if (count % 2 === 0) await store.delete(receipt.key)
}

const work = {
  small: () => roundTrip(1_000),
  large: () => roundTrip(2_500_000),
  async pin() {
    const receipt = await store.put('held all the time')
    live.add(receipt.key)
    const pin = await store.pin(receipt.key)
    await Promise.all([pin?.release(), receipt.release()])
  },
  async sweep() {
    const { aborted, cause } = await store.sweep()
    if (aborted !== undefined && aborted !== 'LeaseLost' && aborted !== 'SweeperLock') throw cause
  },
  usage: () => store.usage()
}

async function keepDoing(name) {
  while (!isOver) {
    try {
      await work[name]()
      successes[name] = (successes[name] ?? 0) + 1
      ends.done = (ends.done ?? 0) + 1
    } catch (error) {
      const isKnown = error.code === 'ERR_BLOB_ENGINE' && (error.transient || error.kind === 'outcome-unknown')
      if (!isKnown && error.code !== 'ERR_BLOB_STAGE_LOST') odd.push(`${name}: ${error.stack}\n${error.cause?.stack}`)
      const kind = error.kind ?? error.code
      ends[kind] = (ends[kind] ?? 0) + 1
    }
    // A server that is away refuses at once.
    await passed(5)
  }
}

async function progress() {
  const before = { ...successes }
  while (Object.keys(work).some(name => successes[name] === before[name])) await passed(10)
}

const lanes = Object.keys(work).map(keepDoing)
say({ at: 'open' })
for await (const { ask } of heard()) {
  if (ask === 'progress') {
    await progress()
    say({ at: 'progress' })
  } else {
    isOver = true
    await Promise.all(lanes)
    await roundTrip(2_500_000)
    await store.close()
    say({ ends, odd, stderr: stderr.join('') })
  }
}
