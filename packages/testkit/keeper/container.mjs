// A PostgreSQL server in a container, on a port of the loopback address that stays the same when it is started again.
//
// The keeper removes the container when it ends. It carries the keeper's name as a label: what a killed keeper left behind is
// removed by the next one, so no container of the reaping kind has to be had as well.
import { randomBytes } from 'node:crypto'
import { isIP } from 'node:net'
import { hostname } from 'node:os'
import postgres from 'postgres'
import { getContainerRuntimeClient, ImageName } from 'testcontainers'
import { freePort } from './port.mjs'
import { isAlive, within } from './watch.mjs'

const USER = 'postgres'
const DATABASE = 'blobs'
const LABEL = 'alkblobs.testkit.keeper'
const MIB = 1024 * 1024
/** A call of the daemon that takes longer is never answered. */
const CALL_MS = 30_000
/** The image has about 150 MiB, of which a slow line gets one a second. */
const PULL_MS = 180_000
const START_MS = 60_000
const SESSION_MS = 5_000
/** A fast shutdown waits for nobody but the disk. */
const STOP_SECONDS = 10

export class Server {
  #image
  #settings
  #container
  #hosts = []
  #host
  #port = 0
  #password = randomBytes(16).toString('hex')

  constructor({ image, settings }) {
    this.#image = image
    this.#settings = { max_connections: '200', lc_messages: 'C', timezone: 'UTC', fsync: 'off', ...settings }
  }

  get address() {
    const [host, port] = [this.#host, this.#port]
    return { kind: 'docker', host, port, user: USER, password: this.#password, database: DATABASE }
  }

  /** Makes the container, and gets its image if it is not there. */
  async prepare() {
    const client = await within(CALL_MS, 'the Docker daemon', getContainerRuntimeClient())
    await within(CALL_MS, 'the list of containers', removeOrphans(client))
    const image = ImageName.fromString(this.#image)
    await within(PULL_MS, `the image ${this.#image}`, client.image.pull(image))
    // A pull that failed half-way is told as a line in the middle of its progress.
    if (!(await within(CALL_MS, 'the image', client.image.exists(image)))) {
      throw new Error(`the image ${this.#image} is not there and cannot be had`)
    }
    this.#hosts = hostsOf(client)
    this.#port = await freePort()
    this.#container = await within(CALL_MS, 'a new container', client.container.create(this.#options()))
  }

  async start() {
    if (!(await this.#isRunning())) {
      await within(CALL_MS, 'the start of the container', this.#container.start())
      await this.#answers()
    }
    return this.address
  }

  async stop() {
    // Its stop signal is that of a fast shutdown.
    if (await this.#isRunning()) {
      await within(CALL_MS, 'the stop of the container', this.#container.stop({ t: STOP_SECONDS }))
    }
  }

  async kill(signal = 'SIGKILL') {
    if (!(await this.#isRunning())) return
    const ended = this.#container.wait({ condition: 'not-running' })
    await within(CALL_MS, 'the end of the container', Promise.all([this.#container.kill({ signal }), ended]))
  }

  async remove() {
    const removed = this.#container?.remove({ force: true, v: true })
    await within(CALL_MS, 'the removal of the container', removed)
  }

  #options() {
    const bindings = this.#hosts.map(host => ({ HostPort: `${this.#port}`, HostIp: isIP(host) === 0 ? '' : host }))
    const command = Object.entries(this.#settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    return {
      Image: this.#image,
      Labels: { [LABEL]: `${hostname()}/${process.pid}` },
      Env: [
        `POSTGRES_USER=${USER}`,
        `POSTGRES_PASSWORD=${this.#password}`,
        `POSTGRES_DB=${DATABASE}`,
        'POSTGRES_INITDB_ARGS=--locale=C --encoding=UTF8'
      ],
      Cmd: ['postgres', ...command],
      StopSignal: 'SIGINT',
      ExposedPorts: { '5432/tcp': {} },
      HostConfig: {
        PortBindings: { '5432/tcp': bindings },
        SecurityOpt: ['no-new-privileges:true'],
        ShmSize: 256 * MIB
      }
    }
  }

  async #isRunning() {
    const { State } = await within(CALL_MS, 'the state of the container', this.#container.inspect())
    return State.Running
  }

  /** A session through the port that was published: the server that makes the database listens on none, so all is made by then. */
  async #answers() {
    for (const until = performance.now() + START_MS; performance.now() < until; ) {
      for (const host of this.#hosts) {
        if (!(await takesSessions({ ...this.address, host }))) continue
        this.#host = host
        return
      }
      if (!(await this.#isRunning())) throw new Error(`PostgreSQL ended: ${await this.#lastWords()}`)
    }
    throw new Error(`PostgreSQL did not start in ${START_MS} ms`)
  }

  async #lastWords() {
    const log = await within(CALL_MS, 'the log', this.#container.logs({ stdout: true, stderr: true, tail: 3 }))
    // Each piece stands behind eight bytes, of which the last four tell its length.
    let said = ''
    for (let at = 0; at + 8 <= log.length; ) {
      const end = at + 8 + log.readUInt32BE(at + 4)
      said += log.toString('utf8', at + 8, end)
      at = end
    }
    return said.trim().replace(/\s*\n\s*/g, ' | ')
  }
}

/**
 * Where ports may be reached: at the loopback address, or, from inside a container that uses its host's daemon, at the bridge between
 * both. A daemon on another machine tells its name, and of its addresses nobody knows which one is meant.
 */
function hostsOf(client) {
  const { host } = client.info.containerRuntime
  const isRemote = host !== 'localhost' && /^(tcp|https?|ssh):/.test(process.env.DOCKER_HOST ?? '')
  if (isRemote) return [host]
  return isIP(host) === 0 ? ['127.0.0.1'] : [...new Set(['127.0.0.1', host])]
}

/** Whether a session begins, at once or after a while of trying. The proxy of a port accepts and closes while nobody listens behind it. */
async function takesSessions({ host, port, user: username, password, database }) {
  const sql = postgres({ host, port, username, password, database, max: 1, backoff: 0.05, onnotice: () => undefined })
  try {
    await within(SESSION_MS, 'a session', sql`SELECT 1`)
    return true
  } catch {
    // Not yet, or not at this address; what is wrong with a server that ends is in its log.
    await new Promise(resolve => setTimeout(resolve, 50))
    return false
  } finally {
    await sql.end({ timeout: 0 })
  }
}

/** Containers of keepers of this machine that are dead. */
async function removeOrphans(client) {
  const { dockerode } = client.container
  for (const { Id, Labels } of await dockerode.listContainers({ all: true, filters: { label: [LABEL] } })) {
    const [host, pid] = Labels[LABEL].split('/')
    if (host !== hostname() || isAlive(Number(pid))) continue
    // Somebody else may be at it.
    await dockerode
      .getContainer(Id)
      .remove({ force: true, v: true })
      .catch(() => undefined)
  }
}
