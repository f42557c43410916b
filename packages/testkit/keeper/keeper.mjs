// A process of its own that owns one PostgreSQL server and lives only as long as somebody holds on to it.
//
// Whoever uses the server keeps a connection to this process's socket. The kernel closes a dead process's connections, so
// when the last one goes the server is stopped and its folder removed, however the users ended. Whoever finds the
// socket taken uses the server behind it.
//
//   argv: one JSON object: { socket, kind: 'embedded' | 'docker', … what the kind needs }
//   keeper -> user, one JSON object a line: { ready: server } or { failed: reason }, then { id, server } or { id, failed }
//   user -> keeper: { do: 'hold' } first, then { id, do: 'start' | 'stop' | 'kill', signal? }
import { unlinkSync } from 'node:fs'
import { connect, createServer } from 'node:net'
import { createInterface } from 'node:readline'
import { within } from './watch.mjs'

/** Nobody came for the server within this time: whoever asked for it is dead. */
const FIRST_USER_MS = 10_000
/** A server that does not go by then, because what runs it hangs, is left to the next keeper. */
const REMOVE_MS = 60_000

const specification = JSON.parse(process.argv[2] ?? '{}')
const users = new Set()
let server
let isEnding = false

await listen()
process.on('SIGTERM', () => end())
process.on('SIGINT', () => end())
process.on('SIGHUP', () => end())
const firstUser = setTimeout(() => end(), FIRST_USER_MS)
const ready = begin()
ready.catch(() => undefined)

async function begin() {
  // What drives Docker is large, and most runs never need it.
  const isContainer = specification.kind === 'docker'
  const { Server } = isContainer ? await import('./container.mjs') : await import('./binaries.mjs')
  server = new Server(specification)
  try {
    await server.prepare()
    return await server.start()
  } catch (error) {
    await server.remove().catch(() => undefined)
    throw error
  }
}

/** The socket is the lock: a second keeper ends at once, and its starter finds the first one. */
async function listen() {
  for (let attempt = 0; attempt < 3; attempt++) {
    const error = await new Promise(resolve => {
      const listener = createServer(accept)
      listener.once('error', resolve)
      listener.listen(specification.socket, () => resolve(undefined))
    })
    if (error === undefined) return
    if (error.code !== 'EADDRINUSE' || (await isAnswered())) process.exit(3)
    unlinkSync(specification.socket)
  }
  process.exit(3)
}

/** A killed keeper leaves its socket's file behind, which nobody answers. */
function isAnswered() {
  return new Promise(resolve => {
    const probe = connect(specification.socket)
    probe.once('connect', () => {
      probe.destroy()
      resolve(true)
    })
    probe.once('error', () => resolve(false))
  })
}

function accept(user) {
  // Came in the moment the last one went: whoever it is comes again, and finds a server of its own.
  if (isEnding) return user.destroy()
  const say = line => user.writable && user.write(`${JSON.stringify(line)}\n`)
  // A user that goes away in the middle of a sentence has gone all the same.
  user.on('error', () => undefined)
  // Who has not said that it holds the server only looked whether anybody answers.
  user.once('close', () => {
    if (users.delete(user) && users.size === 0) end()
  })
  createInterface({ input: user }).on('line', async line => {
    const { id, do: what, signal } = JSON.parse(line)
    if (what === 'hold') return await hold(user, say)
    try {
      await ready
      if (what === 'kill') await server.kill(signal)
      if (what === 'stop') await server.stop()
      say({ id, server: what === 'start' ? await server.start() : server.address })
    } catch (error) {
      say({ id, failed: reasonOf(error) })
    }
  })
}

async function hold(user, say) {
  users.add(user)
  clearTimeout(firstUser)
  await ready.then(
    address => say({ ready: address }),
    error => say({ failed: reasonOf(error) })
  )
}

function reasonOf(error) {
  return error instanceof Error ? error.message : String(error)
}

async function end() {
  if (isEnding) return
  isEnding = true
  try {
    // Gone at once, so that whoever comes now starts a server of its own.
    if (process.platform !== 'win32') unlinkSync(specification.socket)
  } catch {
    // Somebody has removed it already, which is what is wanted.
  }
  await ready.catch(() => undefined)
  await within(REMOVE_MS, 'the end of the server', server?.remove()).catch(() => undefined)
  process.exit(0)
}
