// A PostgreSQL server from binaries on this machine, in a folder of its own that goes with it.
import { execFileSync, spawn, spawnSync } from 'node:child_process'
import { randomBytes } from 'node:crypto'
import { chownSync, cpSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { basename, dirname, join } from 'node:path'
import { freePort } from './port.mjs'
import { isAlive } from './watch.mjs'

const FOLDER_PREFIX = 'alkblobs-pg-'
const USER = 'postgres'
const DATABASE = 'blobs'
const START_MS = 60_000
/** A fast shutdown waits for nobody but the disk; after this the server is made to stop. */
const STOP_MS = 10_000
/** Backends of a killed server notice its death and go; until then its memory is in use and a new one does not start. */
const GONE_MS = 10_000

/** What a server of tests needs: this machine alone, English messages, many sessions, no waiting for the disk. */
const SETTINGS = {
  listen_addresses: '127.0.0.1',
  unix_socket_directories: '',
  max_connections: '200',
  lc_messages: 'C',
  timezone: 'UTC',
  log_timezone: 'UTC',
  fsync: 'off',
  full_page_writes: 'off',
  max_wal_size: '256MB'
}

export class Server {
  #folder
  #bin
  #settings
  #owner
  #postmaster
  #exited = Promise.resolve()
  #said = ''
  #password = randomBytes(16).toString('hex')
  #port = 0

  constructor({ bin, settings }) {
    this.#bin = bin
    this.#settings = { ...SETTINGS, ...settings }
  }

  get address() {
    const password = this.#password
    return { kind: 'embedded', host: '127.0.0.1', port: this.#port, user: USER, password, database: DATABASE }
  }

  /** Makes the folder and the cluster in it. */
  async prepare() {
    removeOrphans()
    this.#folder = mkdtempSync(join(tmpdir(), FOLDER_PREFIX))
    writeFileSync(join(this.#folder, 'keeper.pid'), `${process.pid}\n`)
    this.#owner = ordinaryUser()
    if (this.#owner) chownSync(this.#folder, this.#owner.uid, this.#owner.gid)
    this.#makeReachable()
    const secret = join(this.#folder, 'password')
    writeFileSync(secret, this.#password, { mode: 0o600 })
    if (this.#owner) chownSync(secret, this.#owner.uid, this.#owner.gid)
    const flags = ['--locale=C', '--lc-messages=C', '--encoding=UTF8', '--no-sync', '--no-instructions']
    const access = [`--username=${USER}`, '--auth=scram-sha-256', `--pwfile=${secret}`]
    const { status, stderr, error } = spawnSync(
      this.#program('initdb'),
      [...flags, ...access, '-D', this.#data],
      this.#how
    )
    rmSync(secret)
    if (status !== 0) throw new Error(`initdb failed: ${error?.message ?? lastLines(stderr)}`)
    this.#port = await freePort()
    await this.#makeDatabase()
  }

  async start() {
    const until = Date.now() + GONE_MS
    for (;;) {
      try {
        return await this.#startOnce()
      } catch (error) {
        const isHeld = /still in use|lock file .* already exists|could not create any TCP/.test(error.message)
        if (!isHeld || Date.now() > until) throw error
        await new Promise(resolve => setTimeout(resolve, 50))
      }
    }
  }

  /** A fast shutdown: sessions are cut, what is committed is on the disk. */
  async stop() {
    if (!this.#postmaster) return
    this.#postmaster.kill('SIGINT')
    const late = setTimeout(() => this.#postmaster?.kill('SIGQUIT'), STOP_MS)
    await this.#exited
    clearTimeout(late)
  }

  /** Dies in the middle of whatever it was doing; `start` then recovers. */
  async kill(signal = 'SIGKILL') {
    this.#postmaster?.kill(signal)
    await this.#exited
  }

  async remove() {
    // Its folder goes with it, so nothing needs to be written any more.
    await this.kill('SIGQUIT')
    if (this.#folder) rmSync(this.#folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
  }

  get #data() {
    return join(this.#folder, 'data')
  }

  get #how() {
    const env = { PATH: process.env.PATH ?? '', HOME: this.#folder, TZ: 'UTC', LC_ALL: 'C', ...libraries(this.#bin) }
    return { cwd: this.#folder, env, encoding: 'utf8', windowsHide: true, ...this.#owner }
  }

  #program(name) {
    return join(this.#bin, process.platform === 'win32' ? `${name}.exe` : name)
  }

  /** The server's user may not get into the folder of the packages (somebody's home): then it gets a copy. */
  #makeReachable() {
    const asked = spawnSync(this.#program('postgres'), ['--version'], this.#how)
    if (asked.error?.code === 'EACCES' || asked.status === 126) {
      const home = join(this.#folder, 'native')
      cpSync(dirname(this.#bin), home, { recursive: true, verbatimSymlinks: true })
      this.#bin = join(home, basename(this.#bin))
    } else if (asked.error) {
      throw new Error(`no PostgreSQL can be run from ${this.#bin}: ${asked.error.message}`)
    }
  }

  /** A server of one user reads one statement from its input: no session, no port, no client. */
  async #makeDatabase() {
    const args = ['--single', '-D', this.#data, '-c', 'fsync=off', 'postgres']
    const input = `CREATE DATABASE ${DATABASE}\n`
    const { status, stderr } = spawnSync(this.#program('postgres'), args, { ...this.#how, input })
    if (status !== 0) throw new Error(`the database could not be made: ${lastLines(stderr)}`)
  }

  async #startOnce() {
    if (this.#postmaster) return this.address
    const settings = { ...this.#settings, port: `${this.#port}` }
    const args = Object.entries(settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    const child = spawn(this.#program('postgres'), ['-D', this.#data, ...args], {
      ...this.#how,
      stdio: ['ignore', 'ignore', 'pipe']
    })
    this.#postmaster = child
    this.#said = ''
    this.#exited = new Promise(resolve => {
      const gone = () => {
        this.#postmaster = undefined
        resolve()
      }
      child.once('exit', gone)
      child.once('error', gone)
    })
    await this.#answer(child)
    return this.address
  }

  /** Resolves when the server says that it takes sessions; rejects with its last words when it ends instead. */
  #answer(child) {
    return new Promise((resolve, reject) => {
      const late = setTimeout(() => reject(new Error(`PostgreSQL did not start in ${START_MS} ms`)), START_MS)
      child.stderr.on('data', chunk => {
        this.#said = (this.#said + chunk).slice(-16_384)
        if (this.#said.includes('database system is ready to accept connections')) settle(resolve)
      })
      child.once('error', error => settle(() => reject(error)))
      // Its output may come after its end.
      child.once('close', () => settle(() => reject(new Error(`PostgreSQL ended: ${lastLines(this.#said)}`))))
      function settle(then) {
        clearTimeout(late)
        then()
      }
    })
  }
}

/** PostgreSQL refuses to run as root, so it runs as the user that owns nothing. */
function ordinaryUser() {
  if (process.getuid?.() !== 0) return undefined
  const number = flag => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
  return { uid: number('-u'), gid: number('-g') }
}

/** The packaged binaries bring their libraries along. */
function libraries(bin) {
  const lib = join(dirname(bin), 'lib')
  return process.platform === 'linux' ? { LD_LIBRARY_PATH: lib } : {}
}

function lastLines(text) {
  return (text ?? '').trim().split('\n').slice(-3).join(' | ')
}

/** What a killed keeper left: its server is ended, its folder removed. Only folders that name a keeper, which is dead. */
function removeOrphans() {
  for (const name of readdirSync(tmpdir()).filter(each => each.startsWith(FOLDER_PREFIX))) {
    const folder = join(tmpdir(), name)
    try {
      if (isAlive(Number(readFileSync(join(folder, 'keeper.pid'), 'utf8')))) continue
      const postmaster = Number(readFileSync(join(folder, 'data', 'postmaster.pid'), 'utf8').split('\n')[0])
      if (postmaster > 1 && commandOf(postmaster).includes(folder)) process.kill(postmaster, 'SIGQUIT')
    } catch (error) {
      // No pid file: another user's, one that is being made now, or one whose server was stopped properly.
      if (error.code !== 'ENOENT' || !readable(folder)) continue
    }
    try {
      rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 50 })
    } catch {
      // Another keeper is at it too, or that server still writes its last words: whoever comes next finds what is left.
    }
  }
}

function readable(folder) {
  try {
    return readFileSync(join(folder, 'keeper.pid')).length > 0
  } catch {
    return false
  }
}

function commandOf(pid) {
  try {
    return execFileSync('ps', ['-p', `${pid}`, '-o', 'args='], { encoding: 'utf8' })
  } catch {
    return ''
  }
}
