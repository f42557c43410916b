// The main job of `npm start`: a pool of small blobs in SQLite and large ones in files, filled with the repository's own files,
// read back, half of the references dropped, swept twice, verified. It lies in .alkblobs/demo, apart from a pool that the
// command may keep in .alkblobs, because the demo's sweeps know no references but its own.
import { setMaxListeners } from 'node:events'
import { createReadStream } from 'node:fs'
import { lstat, readdir, readFile } from 'node:fs/promises'
import { createRequire } from 'node:module'
import { join, relative } from 'node:path'
import { inRoot, root } from './workspace.mjs'

const built = path => import(new URL(`../packages/${path}/dist/index.js`, import.meta.url).href)
const [{ openStore }, { sqlite }, { local }] = await Promise.all(['core', 'engine-sqlite', 'engine-local'].map(built))
const { SingleBar } = createRequire(inRoot('packages', 'cli', 'package.json'))('cli-progress')

const pool = inRoot('.alkblobs', 'demo')
const left = new Set([inRoot('.git'), inRoot('.alkblobs')])
const wholeLengthMax = 128 * 1024
const putsAtOnce = 32
const readsAtOnce = 16
const lineEveryMs = 5_000

const isTerminal = process.stdout.isTTY === true
const say = (line = '') => process.stdout.write(`${line}\n`)
const number = value => value.toLocaleString('en-US')
const megabytes = value => `${(value / 1e6).toLocaleString('en-US', { maximumFractionDigits: 1 })} MB`
const seconds = value => `${(value / 1000).toFixed(1)} s`

const stopping = new AbortController()
const { signal } = stopping
// Every file under way listens for the one wish to stop; that many listeners are no leak.
setMaxListeners(0, signal)
for (const name of ['SIGINT', 'SIGTERM']) process.once(name, () => stopping.abort(new Error(name)))

/** Progress by bytes: a bar on a terminal, a line every few seconds in a log. */
function startProgress(label, total) {
  const startedMs = performance.now()
  let done = 0
  const words = () => {
    const elapsedMs = Math.max(1, performance.now() - startedMs)
    const remaining = done > 0 && elapsedMs > 1000 ? `, ${seconds((elapsedMs / done) * (total - done))} left` : ''
    return `${megabytes(done)} of ${megabytes(total)}, ${megabytes((done / elapsedMs) * 1000)}/s${remaining}`
  }
  const line = isTerminal ? undefined : setInterval(() => say(`  ${label}: ${words()}`), lineEveryMs)
  const format = (_options, { progress }) => {
    const full = Math.round(Math.min(1, progress) * 24)
    return `  ${label} [${'='.repeat(full)}${' '.repeat(24 - full)}] ${words()}`.slice(
      0,
      (process.stdout.columns ?? 80) - 1
    )
  }
  const settings = {
    stream: process.stdout,
    clearOnComplete: true,
    gracefulExit: false,
    forceRedraw: true,
    hideCursor: null
  }
  const bar = isTerminal ? new SingleBar({ ...settings, format }) : undefined
  bar?.start(total, 0)
  return {
    add(length) {
      done += length
      bar?.update(Math.min(done, total))
    },
    stop() {
      clearInterval(line)
      bar?.stop()
    }
  }
}

/** Runs `work` on every item, some at once; the first failure stops the others from starting. */
async function atOnce(items, limit, work) {
  const queue = items.values()
  let hasFailed = false
  const worker = async () => {
    for (const item of queue) {
      if (hasFailed) return
      signal.throwIfAborted()
      await work(item).catch(error => {
        hasFailed = true
        throw error
      })
    }
  }
  await Promise.all(Array.from({ length: limit }, worker))
}

/** Every regular file under a folder; links are not followed. */
async function filesUnder(folder, found = []) {
  const entries = await readdir(folder, { withFileTypes: true })
  for (const entry of entries.sort((one, other) => (one.name < other.name ? -1 : 1))) {
    const path = join(folder, entry.name)
    if (left.has(path)) continue
    if (entry.isDirectory()) await filesUnder(path, found)
    else if (entry.isFile()) found.push({ path, length: (await lstat(path)).size })
  }
  return found
}

/** Puts the files and gives the references: which key each path has now. */
async function putFiles(store, files) {
  const references = new Map()
  let created = 0
  let vanished = 0
  const progress = startProgress(
    'putting',
    files.reduce((sum, { length }) => sum + length, 0)
  )
  try {
    await atOnce(files, putsAtOnce, async ({ path, length }) => {
      try {
        const content =
          length <= wholeLengthMax ? await readFile(path) : createReadStream(path, { highWaterMark: 1024 * 1024 })
        const receipt = await store.put(content, length <= wholeLengthMax ? { signal } : { signal, length })
        await receipt.release()
        references.set(path, { key: receipt.key, length: receipt.length })
        if (receipt.created) created += 1
      } catch (error) {
        // A repository is alive: an editor or a build may take a file away, or write to it, while it is read.
        if (error.code !== 'ENOENT' && error.code !== 'ERR_BLOB_LENGTH_MISMATCH') throw error
        vanished += 1
      }
      progress.add(length)
    })
  } finally {
    progress.stop()
  }
  return { references, created, vanished }
}

/** The distinct keys of references, each with its length. */
const distinct = references => new Map([...references.values()].map(({ key, length }) => [key, length]))
const sum = lengths => [...lengths].reduce((total, length) => total + length, 0)

/** Reads every key back; a whole read is verified against its key, so what comes back is what went in. */
async function readBack(store, keys) {
  const progress = startProgress('reading', sum(keys.values()))
  try {
    await atOnce([...keys], readsAtOnce, async ([key, length]) => {
      const blob = await store.get(key, { signal })
      if (blob === undefined) throw new Error(`${key} was put and is not there`)
      let seen = 0
      for await (const chunk of blob) {
        seen += chunk.byteLength
        progress.add(chunk.byteLength)
      }
      if (seen !== length) throw new Error(`${key} has ${seen} bytes instead of ${length}`)
    })
  } finally {
    progress.stop()
  }
}

/** Half of the references: every second path. */
const halfOf = references =>
  new Map([...references].sort(([one], [other]) => (one < other ? -1 : 1)).filter((_, at) => at % 2 === 0))

function sayReport(name, report) {
  if (report.aborted !== undefined) throw new Error(`the sweep gave up: ${report.aborted}`, { cause: report.cause })
  const { scanned, live, candidatesStaged, deleted, cancelledByArbitration, bytesDeleted } = report
  say(
    `  ${name}: scanned ${number(scanned)}, live ${number(live)}, staged ${number(candidatesStaged)}, deleted ${number(deleted)}, ` +
      `kept by arbitration ${number(cancelledByArbitration)}, freed ${megabytes(bytesDeleted)}`
  )
}

const timings = []
/** Runs one step of the demo under a heading, and remembers how long it took. */
async function step(title, work) {
  signal.throwIfAborted()
  say(title)
  const startedMs = performance.now()
  const result = await work()
  timings.push([title, performance.now() - startedMs])
  return result
}

async function demo(store) {
  const files = await step('Find the files of this repository', async () => {
    const found = await filesUnder(root)
    say(`  ${number(found.length)} files, ${megabytes(sum(found.map(({ length }) => length)))}`)
    return found
  })

  const before = await store.usage()
  const { references, created, vanished } = await step('Put them into the pool', () => putFiles(store, files))
  const keys = distinct(references)
  const putBytes = sum([...references.values()].map(({ length }) => length))
  const usage = await store.usage()
  say(
    `  ${number(references.size)} files of ${megabytes(putBytes)} are ${number(keys.size)} entries of ${megabytes(sum(keys.values()))}:`
  )
  say(`  ${number(references.size - keys.size)} files were copies, ${megabytes(putBytes - sum(keys.values()))} saved`)
  if (before.entries > 0)
    say(`  ${number(keys.size - created)} entries were there from an earlier run, ${number(created)} are new`)
  if (vanished > 0) say(`  ${number(vanished)} files changed or vanished while they were read, and were left out`)
  const { kv, large } = usage.perTier
  say(
    `  ${number(kv.entries)} small ones in SQLite (${megabytes(kv.bytes)}), ${number(large.entries)} large ones in files (${megabytes(large.bytes)})`
  )

  await step('Read every entry back, verified against its key', () => readBack(store, keys))
  say(`  ${number(keys.size)} entries, ${megabytes(sum(keys.values()))}, all as they were put`)

  const kept = halfOf(references)
  const keptKeys = distinct(kept)
  await step('Drop half of the references, and sweep twice', async () => {
    say(
      `  ${number(references.size - kept.size)} paths dropped; the other ${number(kept.size)} still need ${number(keptKeys.size)} entries`
    )
    store.protect({ name: 'the demo', live: () => keptKeys.keys() })
    sayReport('first ', await store.sweep({ signal }))
    sayReport('second', await store.sweep({ signal }))
    const there = await store.hasMany(keptKeys.keys())
    const lost = [...there.values()].filter(isThere => !isThere).length
    if (lost > 0) throw new Error(`${lost} referenced entries are gone`)
    say(`  every one of the ${number(keptKeys.size)} referenced entries is still there`)
  })

  const checked = await step('Verify the whole pool', () => store.verify({ signal }))
  if (!checked.clean)
    throw new Error('the pool is not clean; `npm start -- verify --store sqlite:.alkblobs/demo` tells why')
  say(
    `  ${number(checked.entries)} entries, ${megabytes(checked.bytes)} checked: no damage, nothing dangling, nothing left over`
  )
}

function sayClosing() {
  const total = sum(timings.map(([, milliseconds]) => milliseconds))
  const where = relative(process.cwd(), pool) || '.'
  say()
  for (const [title, milliseconds] of timings) say(`  ${title.padEnd(52)}${seconds(milliseconds).padStart(8)}`)
  say(`  ${'All of it'.padEnd(52)}${seconds(total).padStart(8)}`)
  say()
  say(`The pool is in ${where}. Look around: npm start -- usage --store sqlite:${where}`)
}

/** Says how the demo ended early, and gives its exit code. */
function sayFailure(error) {
  if (signal.aborted && signal.reason.message === 'EPIPE') return 0
  if (signal.aborted) {
    process.stderr.write('interrupted; the next run goes on with what is there\n')
    return 130
  }
  const cause = error.cause instanceof Error ? ` (${error.cause.message})` : ''
  process.stderr.write(`alkblobs demo: ${error.message}${cause}\n`)
  process.stderr.write(`To start over, remove ${relative(process.cwd(), pool)}.\n`)
  return 1
}

async function main() {
  const settings = { windowDelayMs: 0, trashDelayMs: 0 }
  const engines = { kv: sqlite({ file: join(pool, 'kv.db') }), large: local({ root: join(pool, 'large') }) }
  const store = await openStore({ ...engines, ...settings })
  try {
    await demo(store)
  } finally {
    await store.close()
  }
  sayClosing()
}

// A reader that has gone away (`| head`) ends the demo without a word.
process.stdout.on('error', () => stopping.abort(new Error('EPIPE')))
say('alkblobs at work on the files of its own repository')
process.exitCode = await main().then(() => 0, sayFailure)
