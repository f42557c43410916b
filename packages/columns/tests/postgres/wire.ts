/** A way to the server that can be cut, refused and silenced, because networks do so at no test's wish. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { atEnd } from './pools.js'

interface Line {
  readonly client: Socket
  readonly server: Socket
}

/** Listens on a port of the loopback address until the test is over. */
export async function listen(accept: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  const listener = createServer(socket => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
    accept(socket)
  })
  listener.listen(0, '127.0.0.1')
  await once(listener, 'listening')
  atEnd(async () => {
    for (const socket of sockets) socket.destroy()
    listener.close()
    await once(listener, 'close')
  })
  return (listener.address() as AddressInfo).port
}

/** Passes everything on until it is told otherwise. */
export class Wire {
  port = 0
  /** How many have connected so far. */
  connects = 0
  /** Bytes that went nowhere: the proof that a silence was one. */
  dropped = 0
  /** How long what is said to the server is on its way, in milliseconds. An end arrives behind it, and is answered at once. */
  lagMs = 0
  /** Bytes that have come from the server. */
  answered = 0
  readonly #lines = new Set<Line>()
  #isSilent = false
  #isRefusing = false

  static async to(target: { readonly host: string; readonly port: number }): Promise<Wire> {
    const wire = new Wire()
    wire.port = await listen(client => wire.#accept(client, target))
    return wire
  }

  /** From now on nothing gets through in either direction, the end of a connection least of all: each side waits for the other. */
  silence(): void {
    this.#isSilent = true
  }

  /** Passes on again. Connections that ended meanwhile end on the other side too; what was lost stays lost. */
  heal(): void {
    this.#isSilent = false
    this.#isRefusing = false
    for (const { client, server } of this.#lines) {
      if (client.destroyed) server.destroy()
      if (server.destroyed) client.destroy()
    }
  }

  /** Takes nothing more from the store until `flow`; what it has taken arrives. */
  stall(): void {
    for (const { client } of this.#lines) client.pause()
  }

  flow(): void {
    for (const { client } of this.#lines) client.resume()
  }

  /** Ends every connection with a reset. */
  reset(): void {
    for (const { client, server } of this.#lines) {
      client.resetAndDestroy()
      server.resetAndDestroy()
    }
  }

  /** Ends every connection, and hangs up on whoever comes until it is healed, as a proxy does whose server is away. */
  refuse(): void {
    this.#isRefusing = true
    this.reset()
  }

  #accept(client: Socket, target: { readonly host: string; readonly port: number }): void {
    this.connects += 1
    if (this.#isRefusing) {
      client.end()
      return
    }
    const server = connect(target)
    const line = { client, server }
    this.#lines.add(line)
    server.on('error', () => undefined)
    this.#pass(client, server, () => this.lagMs)
    this.#pass(server, client, length => {
      this.answered += length
      return 0
    })
    for (const [one, other] of [
      [client, server],
      [server, client]
    ] as const) {
      one.once('close', () => {
        if (!this.#isSilent) setTimeout(() => other.destroy(), one === client ? this.lagMs : 0)
        if (client.destroyed && server.destroyed) this.#lines.delete(line)
      })
    }
  }

  #pass(from: Socket, to: Socket, lagOf: (length: number) => number): void {
    from.on('data', (chunk: Buffer) => {
      if (this.#isSilent) {
        this.dropped += chunk.length
        return
      }
      const wait = lagOf(chunk.length)
      if (wait > 0) setTimeout(() => to.write(chunk), wait)
      else if (!to.write(chunk)) {
        from.pause()
        to.once('drain', () => from.resume())
      }
    })
  }
}
