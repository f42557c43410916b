/** Calls of a process of their own to servers that change what they say: how each ends, and whether the process does. */
import { type ChildProcess, fork } from 'node:child_process'
import { once } from 'node:events'
import { existsSync } from 'node:fs'
import type { AddressInfo, Socket } from 'node:net'
import { createServer } from 'node:net'
import { fileURLToPath } from 'node:url'
import { serve } from './fake-server.js'

const child = fileURLToPath(new URL('./children/client.mjs', import.meta.url))
const built = fileURLToPath(new URL('../dist/index.js', import.meta.url))
/** Longest a round may take; a process that has not answered then is busy for ever. */
const ROUND_MS = 20_000

/** What the process asks of its sessions. */
export const WAYS = ['rows', 'run', 'binary', 'both', 'copy', 'transaction', 'exchange', 'hold'] as const

/** What becomes of one message of the server. */
export type Mischief =
  | { readonly kind: 'change'; readonly at: number; readonly to: number }
  | { readonly kind: 'letter'; readonly letter: string }
  | { readonly kind: 'length'; readonly length: number }
  | ({ readonly kind: 'instead' | 'behind' } & Repetition)
  | { readonly kind: 'end' }

export interface Game {
  readonly way: (typeof WAYS)[number]
  readonly ssl: false | 'prefer'
  /** With the number of the message, for each connection. */
  readonly mischief: readonly (readonly [nth: number, what: Mischief])[]
  /** Whether each byte comes by itself. */
  readonly isCut: boolean
}

/** What is sent instead of a message; `undefined`: the end. */
function changed(said: Buffer, what: Mischief): Iterable<Buffer> | undefined {
  const copy = Buffer.from(said)
  if (what.kind === 'change') copy[what.at % copy.length] = what.to
  else if (what.kind === 'letter') copy.write(what.letter, 'latin1')
  else if (what.kind === 'length' && copy.length >= 5) copy.writeUInt32BE(what.length, 1)
  else if (what.kind === 'instead') return repeated([], what)
  else if (what.kind === 'behind') return repeated([copy], what)
  else if (what.kind === 'end') return undefined
  return [copy]
}

interface Repetition {
  readonly messages: Iterable<Buffer>
  readonly times: number
}

function* repeated(first: readonly Buffer[], { messages, times }: Repetition): Generator<Buffer> {
  yield* first
  for (let time = 0; time < times; time++) yield* messages
}

/** Serves a game until the returned function is called. */
async function open({ mischief, isCut }: Game): Promise<{ readonly port: number; readonly close: () => void }> {
  const sockets = new Set<Socket>()
  const server = createServer({ noDelay: true }, socket => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    let nth = 0
    const send = sender(socket, isCut)
    serve(socket, said => {
      const what = mischief.find(([number]) => number === nth)?.[1]
      nth += 1
      const answer = what === undefined ? [said] : changed(said, what)
      if (answer === undefined) socket.end()
      else send(answer)
    })
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  return {
    port: (server.address() as AddressInfo).port,
    close: () => {
      for (const socket of sockets) socket.destroy()
      server.close()
    }
  }
}

/** Writes what it is given in its order, no more than the client reads, until the client is gone. */
function sender(socket: Socket, isCut: boolean): (messages: Iterable<Buffer>) => void {
  const queue: Iterator<Buffer>[] = []
  let isWaiting = false
  const write = (bytes: Buffer) => {
    const pieces = isCut ? Array.from(bytes, byte => Buffer.from([byte])) : [bytes]
    isWaiting = pieces.map(piece => socket.write(piece)).includes(false)
    if (isWaiting) socket.once('drain', go)
  }
  const go = () => {
    isWaiting = false
    for (let [first] = queue; first !== undefined && !isWaiting && !socket.destroyed; [first] = queue) {
      const next = first.next()
      if (next.done === true) queue.shift()
      else write(next.value)
    }
  }
  return messages => {
    queue.push(messages[Symbol.iterator]())
    if (!isWaiting) go()
  }
}

export class Player {
  readonly #process: ChildProcess
  readonly #gone: Promise<unknown[]>
  #said = ''
  /** The most memory that the process has had. */
  maxRssMiB = 0

  private constructor(process: ChildProcess) {
    this.#process = process
    // All its life: a listener for each round would be many.
    this.#gone = once(process, 'exit')
    for (const stream of [process.stdout, process.stderr]) {
      stream?.on('data', chunk => {
        this.#said = (this.#said + chunk).slice(-2_000)
      })
    }
  }

  static async start(): Promise<Player> {
    if (!existsSync(built)) throw new Error('build the package first: its children import what is published')
    const process = fork(child, [], { stdio: ['ignore', 'pipe', 'pipe', 'ipc'] })
    await once(process, 'message')
    return new Player(process)
  }

  get isAlive(): boolean {
    return this.#process.connected
  }

  /** How each of these games ends: `done`, a code of `classifyPostgres`, or what is no answer to anybody. */
  async play(games: readonly Game[], waitMs: number): Promise<readonly string[]> {
    const servers = await Promise.all(games.map(open))
    const late = setTimeout(() => this.kill(), ROUND_MS)
    const answer = new Promise<{ ends: string[]; maxRssKiB: number }>(resolve => {
      this.#process.once('message', resolve)
    })
    this.#process.send(games.map(({ way, ssl }, n) => ({ way, ssl, port: servers[n]?.port, waitMs })))
    const ended = this.#gone.then(([code, signal]) => ({
      ends: [`the process has ended: ${code ?? signal} ${this.#said}`],
      maxRssKiB: 0
    }))
    const { ends, maxRssKiB } = await Promise.race([answer, ended])
    clearTimeout(late)
    this.maxRssMiB = maxRssKiB / 1024
    for (const { close } of servers) close()
    return ends
  }

  /** Lets the process end: code 0, and nothing said, if nothing keeps it alive. */
  async end(): Promise<{ readonly code: unknown; readonly said: string }> {
    const late = setTimeout(() => this.kill(), ROUND_MS)
    this.#process.send('end')
    const [code, signal] = await this.#gone
    clearTimeout(late)
    return { code: code ?? signal, said: this.#said }
  }

  kill(): void {
    this.#process.kill('SIGKILL')
  }
}
