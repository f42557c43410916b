/** A way to the server that can be cut, silenced and shared, because the server and the system do so at no test's wish. */
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

export interface Place {
  readonly host: string
  readonly port: number
}

interface Line {
  readonly client: Socket
  readonly server: Socket
  /** What goes nowhere on this line alone. */
  swallows?: 'requests' | 'answers'
}

/** Listens on a port of the loopback address until the test is over. */
export async function listen(accept: (socket: Socket) => void): Promise<number> {
  const sockets = new Set<Socket>()
  // Each small message on its way at once, as between a client and its server.
  const server: Server = createServer({ noDelay: true }, socket => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => sockets.delete(socket))
    accept(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  return (server.address() as AddressInfo).port
}

/** Passes everything on, until it is told otherwise. */
export class Wire {
  readonly lines = new Set<Line>()
  port = 0
  /** How many have connected so far. */
  connects = 0
  /** Bytes that went nowhere: the proof that a silence was one. */
  dropped = 0
  /** Told of each reset. */
  onReset: () => void = () => undefined
  #dropsRequests = false
  #dropsAnswers = false
  #resetsAtRequest = false
  #garbles: string | undefined
  #after: { bytes: number; readonly act: () => void } | undefined

  static async to(target: Place): Promise<Wire> {
    const wire = new Wire()
    wire.port = await listen(client => wire.#accept(client, target))
    return wire
  }

  /** Nothing gets through any more, in either direction, and nobody is told. */
  blackHole(): void {
    this.#dropsRequests = true
    this.#dropsAnswers = true
  }

  /** What is asked arrives; what is answered does not. */
  mute(): void {
    this.#dropsAnswers = true
  }

  /** Nothing of this kind gets through any more on the lines that are open now; nobody is told, and new lines are well. */
  swallow(what: 'requests' | 'answers'): void {
    for (const line of this.lines) line.swallows = what
  }

  /** The next request does not arrive: instead every connection ends with a reset. */
  resetAtRequest(): void {
    this.#resetsAtRequest = true
  }

  /** The next request with this text arrives, and the server cannot read it. */
  garble(text: string): void {
    this.#garbles = text
  }

  /** Waits until something that was asked of a black hole has gone nowhere. */
  async silent(): Promise<void> {
    const before = this.dropped
    while (this.dropped === before) await new Promise(resolve => setTimeout(resolve, 5))
  }

  heal(): void {
    this.#dropsRequests = false
    this.#dropsAnswers = false
  }

  /** Ends every connection with a reset. */
  reset(): void {
    this.onReset()
    for (const { client, server } of this.lines) {
      client.resetAndDestroy()
      server.destroy()
    }
  }

  /** Ends every connection as if both sides had hung up. */
  hangUp(): void {
    for (const { client, server } of this.lines) {
      client.end()
      server.end()
    }
  }

  /** Resets every connection once this many more bytes have come from the server. */
  resetAfter(bytes: number): void {
    this.#after = { bytes, act: () => this.reset() }
  }

  #accept(client: Socket, target: Place): void {
    this.connects += 1
    const server = connect({ host: target.host, port: target.port, noDelay: true })
    const line: Line = { client, server }
    this.lines.add(line)
    server.on('error', () => client.destroy())
    client.on('data', chunk => {
      if (this.#resetsAtRequest) {
        this.#resetsAtRequest = false
        this.dropped += chunk.length
        this.reset()
      } else if (this.#dropsRequests || line.swallows === 'requests') this.dropped += chunk.length
      else server.write(this.#asked(chunk))
    })
    server.on('data', chunk => {
      if (this.#dropsAnswers || line.swallows === 'answers') this.dropped += chunk.length
      else this.#answer(client, chunk)
    })
    client.once('close', () => {
      this.lines.delete(line)
      server.destroy()
    })
    server.once('close', () => client.end())
  }

  #asked(chunk: Buffer): Buffer {
    const at = this.#garbles === undefined ? -1 : chunk.indexOf(this.#garbles)
    if (at < 0) return chunk
    this.#garbles = undefined
    return Buffer.concat([chunk.subarray(0, at), Buffer.from('?'), chunk.subarray(at + 1)])
  }

  #answer(client: Socket, chunk: Buffer): void {
    const after = this.#after
    if (after === undefined || chunk.length < after.bytes) {
      if (after !== undefined) after.bytes -= chunk.length
      client.write(chunk)
      return
    }
    this.#after = undefined
    client.write(chunk.subarray(0, after.bytes))
    after.act()
  }
}
