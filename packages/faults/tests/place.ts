/** Ends of connections for the tests of the proxy: servers that answer, and clients that remember how they ended. */
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { onTestFinished } from 'vitest'

/** A server on a port of its own, until the test is over. */
export async function listen(accept: (socket: Socket) => void): Promise<{ host: string; port: number }> {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, socket => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    accept(socket)
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  onTestFinished(async () => {
    for (const socket of sockets) socket.destroy()
    server.close()
    await once(server, 'close')
  })
  return { host: '127.0.0.1', port: (server.address() as AddressInfo).port }
}

/** Sends back what it gets, and hangs up when the client does. */
export const echo = () => listen(socket => socket.pipe(socket))

export interface Ended {
  readonly code: string | undefined
}

/** A client that gathers what it gets. */
export class Client {
  readonly chunks: Buffer[] = []
  readonly ended: Promise<Ended>
  readonly socket: Socket
  #code: string | undefined

  private constructor(socket: Socket) {
    this.socket = socket
    socket.on('data', chunk => this.chunks.push(chunk))
    socket.on('error', (error: NodeJS.ErrnoException) => {
      this.#code = error.code
    })
    this.ended = new Promise(resolve => socket.once('close', () => resolve({ code: this.#code })))
    onTestFinished(() => void socket.destroy())
  }

  static async to(at: { readonly host: string; readonly port: number }): Promise<Client> {
    const socket = connect({ host: at.host, port: at.port })
    await once(socket, 'connect')
    return new Client(socket)
  }

  send(bytes: string | Buffer): void {
    this.socket.write(bytes)
  }

  get length(): number {
    return this.chunks.reduce((sum, { length }) => sum + length, 0)
  }

  /** Resolves when so many bytes have come. */
  async received(length: number): Promise<Buffer> {
    while (this.length < length) await once(this.socket, 'data')
    return Buffer.concat(this.chunks)
  }
}

export const pause = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
