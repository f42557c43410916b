// What every worker works with: the pool in a folder, contents made from names, the application's table of references, and
// the line protocol with the test. Workers import the packages as a user's program does: the built files.
import { createHash } from 'node:crypto'
import { existsSync, readdirSync, writeSync } from 'node:fs'
import { createRequire } from 'node:module'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { openStore } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { sqlite } from '@alkblobs/engine-sqlite'

/** The engine's own driver, for connections that know nothing of the engine. */
const Database = createRequire(import.meta.resolve('@alkblobs/engine-sqlite'))('better-sqlite3')

export const THRESHOLD = 4_096

/** What the test passed to this process. */
export const given = JSON.parse(process.argv[2] ?? '{}')

/** sqlite + local, with no delay anywhere: what a sweep stages the next one removes. */
export function openPool(folder, options = {}) {
  return openStore({
    kv: sqlite({ file: fileOf(folder) }),
    large: local({ root: rootOf(folder) }),
    threshold: THRESHOLD,
    windowDelayMs: 0,
    trashDelayMs: 0,
    ...options
  })
}

export const fileOf = folder => join(folder, 'pool.db')
export const rootOf = folder => join(folder, 'bodies')

/** The bytes of a name: the same in every process, and of no other name. */
export function contentOf(name, length) {
  return length === 0 ? Buffer.alloc(0) : createHash('shake256', { outputLength: length }).update(name).digest()
}

/** The same bytes as a stream of unequal chunks. */
export async function* streamOf(bytes) {
  for (let at = 0, step = 1_000; at < bytes.length; at += step, step = 70_001) yield bytes.subarray(at, at + step)
}

/** A connection beside the store's: to age rows, to count them, to write them without a put. */
export function connect(folder) {
  return new Database(fileOf(folder), { fileMustExist: true, timeout: 10_000 })
}

/** The application's own table of references, shared by all processes: what a liveness source reads. */
export class References {
  #db
  #add
  #remove
  #all

  constructor(folder) {
    this.#db = new Database(join(folder, 'application.db'), { timeout: 10_000 })
    // In the journal mode that it has: a change of mode does not wait, and two processes that open at once would fail.
    // The application survives the death of its processes, which is all that happens here.
    this.#db.pragma('synchronous = OFF')
    this.#db.exec('CREATE TABLE IF NOT EXISTS documents (key TEXT PRIMARY KEY) WITHOUT ROWID')
    this.#add = this.#db.prepare('INSERT OR IGNORE INTO documents (key) VALUES (?)')
    this.#remove = this.#db.prepare('DELETE FROM documents WHERE key = ?')
    this.#all = this.#db.prepare('SELECT key FROM documents').pluck()
  }

  /** Committed when it returns, as the removal is. */
  add(key) {
    this.#add.run(key)
  }

  remove(key) {
    this.#remove.run(key)
  }

  all() {
    return this.#all.all()
  }

  get source() {
    return { name: 'documents', live: () => this.all() }
  }
}

/** What lies in the folder of bodies, counted without the engine. */
export function filesIn(folder) {
  const names = at => (existsSync(at) ? readdirSync(at) : [])
  const root = rootOf(folder)
  const shards = names(root).filter(name => /^[0-9a-f]{2}$/.test(name))
  const inner = shards.flatMap(outer => names(join(root, outer)).map(name => join(root, outer, name)))
  return { bodies: inner.flatMap(shard => names(shard)).length, stages: names(join(root, 'stage')).length }
}

/** Runs `work` for every item, so many at once. */
export async function inLanes(items, lanes, work) {
  const rest = items.entries()
  const lane = async () => {
    for (const [index, item] of rest) await work(item, index)
  }
  await Promise.all(Array.from({ length: lanes }, lane))
}

/** Says one thing to the test. Written when this returns: the process may be killed at its next step. */
export function say(message) {
  writeSync(1, `${JSON.stringify(message)}\n`)
}

/** What the test says, one thing a line, until it closes the input. */
export async function* heard() {
  for await (const line of createInterface({ input: process.stdin })) yield JSON.parse(line)
}

/** Resolves when the test says so. */
export function toldOnce() {
  return new Promise(resolve => {
    const lines = createInterface({ input: process.stdin })
    lines.once('line', line => {
      lines.close()
      process.stdin.unref?.()
      resolve(JSON.parse(line))
    })
  })
}

/** Repeatable random numbers from a seed. */
export function randomFrom(seed) {
  let state = seed >>> 0
  const next = () => {
    state = (state + 0x6d2b79f5) >>> 0
    let mixed = Math.imul(state ^ (state >>> 15), state | 1)
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61)
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  return { chance: probability => next() < probability, below: limit => Math.floor(next() * limit) }
}
