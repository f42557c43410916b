// A PostgreSQL server in a container, on a port that stays the same when it is started again.
import { randomBytes } from 'node:crypto'
import { GenericContainer, getContainerRuntimeClient, Wait } from 'testcontainers'
import { freePort } from './port.mjs'

const USER = 'postgres'
const DATABASE = 'blobs'

export class Server {
  #image
  #settings
  #port = 0
  #password = randomBytes(16).toString('hex')
  #started
  #isRunning = false

  constructor({ image, settings }) {
    this.#image = image
    this.#settings = { max_connections: '200', lc_messages: 'C', timezone: 'UTC', fsync: 'off', ...settings }
  }

  get address() {
    const version = /:(\d+(\.\d+)?)/.exec(this.#image)?.[1]
    return {
      kind: 'docker',
      host: '127.0.0.1',
      port: this.#port,
      user: USER,
      password: this.#password,
      database: DATABASE,
      version
    }
  }

  async prepare() {
    this.#port = await freePort()
    const command = Object.entries(this.#settings).flatMap(([name, value]) => ['-c', `${name}=${value}`])
    this.#started = await new GenericContainer(this.#image)
      .withEnvironment({
        POSTGRES_USER: USER,
        POSTGRES_PASSWORD: this.#password,
        POSTGRES_DB: DATABASE,
        POSTGRES_INITDB_ARGS: '--locale=C --encoding=UTF8'
      })
      .withCommand(['postgres', ...command])
      .withExposedPorts({ container: 5432, host: this.#port })
      // The first time it says so, it is still making the database.
      .withWaitStrategy(Wait.forLogMessage(/database system is ready to accept connections/, 2))
      .start()
    this.#isRunning = true
  }

  async start() {
    if (!this.#isRunning) {
      await (await this.#container()).start()
      await this.#answers()
      this.#isRunning = true
    }
    return this.address
  }

  async stop() {
    if (this.#isRunning) await (await this.#container()).stop({ t: 10 })
    this.#isRunning = false
  }

  async kill(signal = 'SIGKILL') {
    if (this.#isRunning) await (await this.#container()).kill({ signal })
    this.#isRunning = false
  }

  async remove() {
    await this.#started?.stop({ remove: true, removeVolumes: true, timeout: 0 })
  }

  async #container() {
    return (await getContainerRuntimeClient()).container.getById(this.#started.getId())
  }

  async #answers() {
    for (let attempt = 0; attempt < 300; attempt++) {
      const { exitCode } = await this.#started.exec(['pg_isready', '-h', '127.0.0.1', '-U', USER, '-d', DATABASE])
      if (exitCode === 0) return
      await new Promise(resolve => setTimeout(resolve, 200))
    }
    throw new Error('PostgreSQL in the container did not start again')
  }
}
