/** This process's end of a keeper: the connection whose end lets go of the server, and the orders over it. */
import { spawn } from 'node:child_process'
import { connect, type Socket } from 'node:net'
import { createInterface } from 'node:readline'
import { fileURLToPath } from 'node:url'
import type { Start } from './choice.js'

export interface Address {
  readonly kind: 'env' | 'docker' | 'embedded'
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly database: string
}

/** How long a keeper may take to listen; the server behind it takes the time it needs. */
const LISTEN_MS = 20_000
const RETRY_MS = 20
const SPAWN_AGAIN_MS = 1_500
const PROGRAM = fileURLToPath(new URL('../keeper/keeper.mjs', import.meta.url))

interface Line {
  readonly id?: number
  readonly ready?: Address
  readonly server?: Address
  readonly failed?: string
}
interface Waiter {
  readonly resolve: (address: Address) => void
  readonly reject: (error: Error) => void
}

/** The keeper ended before it said anything: it was about to, or has been killed. The next one may do better. */
export class KeeperGone extends Error {}

export class Keeper {
  readonly #socket: Socket
  readonly #waiting = new Map<number | undefined, Waiter>()
  readonly #lines
  #orders = 0

  constructor(socket: Socket) {
    this.#socket = socket
    this.#lines = createInterface({ input: socket })
    this.#lines.on('line', line => this.#hear(JSON.parse(line) as Line))
    socket.on('error', () => undefined)
    socket.once('close', () => this.#end())
    // A server that is held keeps no process alive; an order that is awaited does.
    socket.unref()
    socket.write(`${JSON.stringify({ do: 'hold' })}\n`)
  }

  /** The server, once it takes sessions. @throws Error with the reason why it does not. */
  ready(): Promise<Address> {
    return this.#expect(undefined)
  }

  order(what: 'start' | 'stop' | 'kill', signal?: string): Promise<Address> {
    this.#orders += 1
    const answer = this.#expect(this.#orders)
    this.#socket.write(`${JSON.stringify({ id: this.#orders, do: what, signal })}\n`)
    return answer
  }

  /** Lets go; the last one to do so ends the server. */
  async release(): Promise<void> {
    if (this.#socket.destroyed) return
    this.#socket.ref()
    const closed = new Promise(resolve => this.#socket.once('close', resolve))
    this.#socket.destroy()
    await closed
  }

  #expect(id: number | undefined): Promise<Address> {
    if (this.#socket.destroyed) return Promise.reject(new KeeperGone('the keeper of the server has ended'))
    this.#socket.ref()
    return new Promise((resolve, reject) => this.#waiting.set(id, { resolve, reject }))
  }

  #hear(line: Line): void {
    const waiter = this.#waiting.get(line.id)
    this.#waiting.delete(line.id)
    if (this.#waiting.size === 0) this.#socket.unref()
    const address = line.ready ?? line.server
    if (address === undefined) waiter?.reject(new Error(line.failed ?? 'the keeper answered nothing'))
    else waiter?.resolve(address)
  }

  #end(): void {
    this.#lines.close()
    for (const { reject } of this.#waiting.values()) reject(new KeeperGone('the keeper of the server has ended'))
    this.#waiting.clear()
  }
}

/** Holds on to the keeper behind the socket, or starts one. @throws Error if no keeper listens in time. */
export async function keep(
  socketPath: string,
  start: Start,
  settings: Readonly<Record<string, string>>
): Promise<Keeper> {
  const until = performance.now() + LISTEN_MS
  let spawnAgainAt = 0
  for (;;) {
    const socket = await tryConnect(socketPath)
    if (socket !== undefined) return new Keeper(socket)
    if (performance.now() > until) throw new Error('no keeper of a server listens')
    // One that finds the socket taken ends, and the one behind it may end too before it is reached: then another is needed.
    if (performance.now() >= spawnAgainAt) {
      spawnKeeper(JSON.stringify({ socket: socketPath, ...start, settings }))
      spawnAgainAt = performance.now() + SPAWN_AGAIN_MS
    }
    await new Promise(resolve => setTimeout(resolve, RETRY_MS))
  }
}

/** Detached, so that neither a signal to the tests' group nor their death takes it along before it has tidied up. */
function spawnKeeper(specification: string): void {
  const { NODE_OPTIONS: _, ...env } = process.env
  spawn(process.execPath, [PROGRAM, specification], { detached: true, stdio: 'ignore', env }).unref()
}

function tryConnect(path: string): Promise<Socket | undefined> {
  return new Promise(resolve => {
    const socket = connect(path)
    socket.once('connect', () => resolve(socket))
    socket.once('error', () => resolve(undefined))
  })
}
