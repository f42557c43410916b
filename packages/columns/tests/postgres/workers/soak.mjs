// One process of the soak: random operations over a few hundred keys, in lanes, and in two of the processes sweeps without a pause. It
// writes down what it did and saw, a line at a time, into a log of its own, and is killed, stopped and cut off as it goes.
import { openSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { setTimeout as sleep } from 'node:timers/promises'
import { tapped } from '@alkblobs/conformance'
import { contentOf, given, openPool, randomFrom, say, THRESHOLD, toldOnce } from './fleet-pool.mjs'

const { place, log, seed, slot, life, keys, operations, sweeps, table, options } = given
const LANES = 3
const HELD_MAX = 8
const random = randomFrom(seed)
const file = openSync(log, 'a', 0o600)
const write = event => writeSync(file, `${JSON.stringify(event)}\n`)
const before = () => Date.now()
const after = () => Date.now() + 1
let made = 0
const newId = what => `${what} ${slot}.${life}.${++made}`

/** The application's own connection, which nobody cuts off: its log of references is exact. */
const sql = createRequire(import.meta.resolve('@alkblobs/testkit'))('postgres')(place.url, {
  max: 2,
  onnotice: () => {},
  connection: { application_name: 'application' }
})

/** Notes every lease and what begins under it. */
function noted(definition) {
  let lease
  const effect =
    inner =>
    name =>
    async (...args) => {
      const [id, at] = [lease, before()]
      const answer = await inner[name](...args)
      // Removals of direct deletes and of losing puts need no lease.
      const isUnderLease = name !== 'remove' || args[0].some(({ kind }) => kind === 'candidate')
      if (id !== undefined && isUnderLease) write({ op: 'effect', id, at })
      return answer
    }
  return tapped(definition, {
    catalog: inner => ({
      async lease(...args) {
        const taken = await inner.lease(...args)
        if (taken === undefined) return undefined
        lease = newId('lease')
        write({ op: 'lease', id: lease, at: after() })
        return taken
      },
      ...Object.fromEntries(['maintain', 'stageCandidates', 'remove'].map(name => [name, effect(inner)(name)]))
    })
  })
}

/** A process that is cut off while it starts begins again, as whoever supervises it would have it do. */
async function started() {
  for (let attempt = 1; ; attempt++) {
    let opened
    try {
      opened = await openPool(place, { name: `soak ${slot}`, wrap: noted, ...options })
      await opened.protect({ table, column: 'key' })
      return opened
    } catch (error) {
      await opened?.close()
      // A fleet that cannot be looked at is refused; it could not be looked at because the session was cut off.
      const isCutOff = (error.code === 'ERR_BLOB_FLEET' ? error.cause : error)?.code === 'ERR_BLOB_ENGINE'
      if (!isCutOff || attempt === 20) throw error
    }
  }
}

const store = await started()

const nameOf = n => ({ name: `soak ${n}`, length: n % 3 === 0 ? THRESHOLD + 1_000 + n : 100 + n })
const picked = () => nameOf(random.below(keys))
const known = new Map()
const held = []

async function* streamed(bytes) {
  for (let at = 0; at < bytes.length; at += 1_500) yield bytes.subarray(at, at + 1_500)
}

/** Says that the pin stands, if it does. The moment is read first: it stood then. */
function stands({ id, pin }) {
  const at = before()
  if (pin.held) write({ op: 'stands', id, at })
  return pin.held
}

async function put() {
  const content = picked()
  const bytes = contentOf(content.name, content.length)
  const from = before()
  write({ op: 'unknown', made: 1, removed: 0 })
  const receipt = await store.put(random.chance(0.5) ? bytes : streamed(bytes))
  write({ op: 'unknown', made: -1, removed: 0 })
  const { key, pin } = receipt
  known.set(key, content)
  if (receipt.created) {
    write({ op: 'made', by: 'put', count: 1 })
    write({ op: 'absent', key, from, to: after(), by: 'put' })
  }
  const taken = { id: newId('pin'), key, pin }
  write({ op: 'protect', id: taken.id, key, at: after() })
  await read(key)
  stands(taken)
  if (random.chance(0.3)) await reference(taken)
  if (random.chance(0.3) && held.length < HELD_MAX) held.push(taken)
  else await release(taken)
}

async function pinned() {
  const key = await anyKey()
  if (key === undefined) return
  const from = before()
  const pin = await store.pin(key)
  if (pin === undefined) return write({ op: 'absent', key, from, to: after(), by: 'pin' })
  const taken = { id: newId('pin'), key, pin }
  write({ op: 'protect', id: taken.id, key, at: after() })
  await read(key)
  stands(taken)
  if (random.chance(0.5)) await reference(taken)
  await release(taken)
}

/** A reference counts if the pin stood after it was committed; else it is taken back, as an application must. */
async function reference(taken) {
  const id = newId('reference')
  await sql`INSERT INTO ${sql(table)} (id, slot, key) VALUES (${id}, ${slot}, ${taken.key})`.catch(() => {
    throw new Error('the application lost its own database')
  })
  if (stands(taken)) write({ op: 'protect', id, key: taken.key, at: after() })
  else await sql`DELETE FROM ${sql(table)} WHERE id = ${id}`
}

/** More at once than a step takes: else everything ends up referenced, and nothing is left to collect. */
async function dereference() {
  const rows = await sql`SELECT id FROM ${sql(table)} WHERE slot = ${slot} ORDER BY md5(id || ${made}) LIMIT 3`
  for (const { id } of rows) {
    write({ op: 'stands', id, at: before() })
    await sql`DELETE FROM ${sql(table)} WHERE id = ${id}`
  }
}

async function release(taken) {
  stands(taken)
  await taken.pin.release()
}

async function read(key) {
  const from = before()
  const blob = await store.get(key)
  if (blob === undefined) return write({ op: 'absent', key, from, to: after(), by: 'get' })
  const content = known.get(key)
  const bytes = await blob.bytes().catch(error => {
    // Gone while it was read: what it was absent for is for the checker.
    if (error.code !== 'ERR_BLOB_REMOVED') throw error
    write({ op: 'absent', key, from, to: after(), by: 'read' })
  })
  const isRight = bytes === undefined || Buffer.compare(bytes, contentOf(content.name, content.length)) === 0
  if (!isRight) write({ op: 'damaged', key, at: after() })
}

async function anyKey() {
  const seen = [...known.keys()]
  return seen[random.below(Math.max(1, seen.length))]
}

async function remove() {
  const key = await anyKey()
  if (key === undefined) return
  const from = before()
  write({ op: 'unknown', made: 0, removed: 1 })
  const isRemoved = await store.delete(key).catch(error => {
    if (error.code !== 'ERR_BLOB_GC_REFUSED') throw error
    return false
  })
  write({ op: 'unknown', made: 0, removed: -1 })
  if (!isRemoved) return
  write({ op: 'removed', by: 'delete', count: 1 })
  write({ op: 'absent', key, from, to: after(), by: 'delete' })
}

async function step() {
  const chance = random.below(100)
  if (chance < 50) return ['put', put]
  if (chance < 65) return ['get', async () => anyKey().then(key => key && read(key))]
  if (chance < 75) return ['pin', pinned]
  if (chance < 85) return ['delete', remove]
  if (chance < 95) return ['dereference', dereference]
  return ['release', async () => Promise.all(held.splice(0, 2).map(release))]
}

let left = operations
let isOver = false

/** What fails is written down, and judged by its code. A failure of an operation is one of its outcomes. */
async function noting(what, run) {
  try {
    await run()
    write({ op: 'done', what })
  } catch (error) {
    write({ op: 'failed', what, code: error.code, message: `${error.stack}` })
    // Without a server there is nothing to do but wait a moment.
    if (error.code === 'ERR_BLOB_ENGINE') await sleep(20)
  }
}

async function lane() {
  while (left-- > 0) {
    const [what, run] = await step()
    await noting(what, run)
  }
}

async function sweeping() {
  while (!isOver) {
    const isMaintenance = random.chance(0.1)
    await noting(isMaintenance ? 'maintain' : 'sweep', async () => {
      if (isMaintenance) return await store.maintain({ scan: random.chance(0.5) })
      write({ op: 'unknown', made: 0, removed: keys })
      const { deleted, aborted } = await store.sweep()
      // The last batch of a sweep that lost its lease may have gone without anybody knowing.
      if (aborted !== 'LeaseLost') write({ op: 'unknown', made: 0, removed: -keys })
      if (deleted > 0) write({ op: 'removed', by: 'sweep', count: deleted })
      if (aborted === 'ProtectFailed' || aborted === 'NoLivenessSources')
        throw new Error(`a sweep was aborted: ${aborted}`)
    })
    await sleep(random.below(20))
  }
}

say({ at: 'started' })
const lanes = Promise.all(Array.from({ length: LANES }, lane)).then(() => say({ at: 'done' }))
const sweeper = sweeps ? sweeping() : undefined
await Promise.all([lanes, toldOnce()])
isOver = true
await sweeper
await Promise.all(held.splice(0).map(release))
await store.close()
await sql.end()
process.exit(0)
