// A process that does what the test asks, one answer for each question, in whatever order they are done. With it a test
// puts steps of several processes in an order of its choice.
import { existsSync } from 'node:fs'
import { appendFile } from 'node:fs/promises'
import {
  connect,
  contentOf,
  fileOf,
  filesIn,
  given,
  heard,
  inLanes,
  openPool,
  References,
  say,
  streamOf
} from './pool.mjs'

const { folder } = given
const references = new References(folder)
const held = new Map()
let store
/** Fires the barrier inside the liveness source, when a sweep was asked to wait there. */
let goOn

const contentsOf = ({ prefix, from = 0, to, lengths }) =>
  Array.from({ length: to - from }, (_, i) => {
    const n = from + i
    return contentOf(`${prefix}${n}`, lengths[n % lengths.length])
  })

function hold(pin) {
  const id = held.size + 1
  held.set(id, pin)
  return id
}

const answers = {
  async open({ options }) {
    store = await openPool(folder, options)
  },
  async close() {
    await store.close()
  },
  /** The receipt stays open under `pin` until it is released. */
  async put({ name, length, streamed, options }) {
    const bytes = contentOf(name, length)
    const receipt = await store.put(streamed ? streamOf(bytes) : bytes, options)
    return { key: receipt.key, created: receipt.created, pin: hold(receipt) }
  },
  async pin({ key }) {
    const pin = await store.pin(key)
    return pin && hold(pin)
  },
  async release({ pin }) {
    await held.get(pin).release()
  },
  /** `same` as the content of that name, `different`, or `absent`. */
  async get({ key, name, length }) {
    const blob = await store.get(key)
    if (blob === undefined) return 'absent'
    return Buffer.compare(await blob.bytes(), contentOf(name, length)) === 0 ? 'same' : 'different'
  },
  stat: ({ key }) => store.stat(key),
  /** Ends the rows of released pins now: a store does so before it deletes, and this key does not exist. */
  flush: () => store.delete(`blake3:${'0'.repeat(64)}`),
  delete: ({ key }) => store.delete(key),
  reference: ({ key }) => references.add(key),
  dereference: ({ key }) => references.remove(key),
  usage: () => store.usage(),
  verify: () => store.verify(),
  maintain: () => store.maintain({ scan: true }),
  files: () => filesIn(folder),
  /** `keys`: what the source calls live; without it the table of references, read before the barrier. */
  async sweep({ keys, barrier, options }) {
    const live = async () => {
      const answer = keys ?? references.all()
      if (!barrier) return answer
      const passed = new Promise(resolve => {
        goOn = resolve
      })
      say({ at: 'barrier' })
      await passed
      return answer
    }
    const protection = store.protect({ name: 'documents', live })
    try {
      return await store.sweep(options)
    } finally {
      protection.remove()
    }
  },
  go: () => goOn(),
  /** Puts many, releases them, and answers their keys, or writes them to a file, one a line. */
  async fill({ contents, lanes, file }) {
    const keys = []
    await inLanes(contentsOf(contents), lanes, async (bytes, index) => {
      const receipt = await store.put(bytes)
      keys[index] = receipt.key
      await receipt.release()
    })
    if (file === undefined) return keys
    await appendFile(file, keys.map(key => `${key}\n`).join(''))
    return keys.length
  },
  /** Lets so much time pass for stages, pins and candidates: everything in the pool becomes older. */
  age({ ms }) {
    if (!existsSync(fileOf(folder))) return
    const db = connect(folder)
    // A process killed early leaves a file without a pool in it.
    if (db.pragma('user_version', { simple: true }) > 0) {
      db.prepare('UPDATE stages SET expires_at = expires_at - ?').run(ms)
      db.prepare('UPDATE gc_pins SET expires_at = expires_at - ?').run(ms)
      db.prepare('UPDATE gc_window SET staged_at = staged_at - ?').run(ms)
    }
    db.close()
  },
  /** Counts rows without the engine. */
  rows() {
    const db = connect(folder)
    const count = table => db.prepare(`SELECT count(*) FROM ${table}`).pluck().get()
    const tables = ['entries', 'bodies', 'gc_pins', 'gc_window', 'stages', 'trash']
    const counted = Object.fromEntries(tables.map(table => [table, count(table)]))
    db.close()
    return counted
  }
}

async function answer({ id, ask, ...rest }) {
  try {
    say({ id, answer: await answers[ask](rest) })
  } catch (error) {
    say({ id, error: { name: error.name, code: error.code, reason: error.reason, message: error.stack } })
  }
}

for await (const question of heard()) answer(question)
