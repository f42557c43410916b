/**
 * A proxy that answers for the server, as poolers do: it names a process of its own invention. Sessions start each with a server
 * of their own; then `session` keeps it so, and `transaction` gives every transaction the server that was free last.
 */
import { connect, type Socket } from 'node:net'
import { listen, type Place } from './wire.js'

interface Client {
  readonly socket: Socket
  server: Backend | undefined
  readonly queue: Buffer[]
}
interface Backend {
  readonly socket: Socket
  client: Client | undefined
  isReady: boolean
}

const KEY_DATA = 'K'.charCodeAt(0)
const READY = 'Z'.charCodeAt(0)
const IDLE = 'I'.charCodeAt(0)

export async function pooler(target: Place, mode: 'session' | 'transaction'): Promise<number> {
  const free: Backend[] = []
  const serve = (client: Client) => {
    client.server ??= free.pop()
    if (client.server === undefined) return
    client.server.client = client
    for (const chunk of client.queue.splice(0)) client.server.socket.write(chunk)
  }
  const clients = new Set<Client>()
  return listen(socket => {
    const client: Client = { socket, server: undefined, queue: [] }
    const backend: Backend = {
      socket: connect({ host: target.host, port: target.port, noDelay: true }),
      client,
      isReady: false
    }
    client.server = backend
    clients.add(client)
    frames(backend.socket, (type, frame) => {
      if (type === KEY_DATA) frame.writeInt32BE(1_000_000 + clients.size, 5)
      const owner = backend.client
      owner?.socket.write(frame)
      if (type !== READY || frame[5] !== IDLE || mode === 'session') return
      backend.isReady = true
      backend.client = undefined
      if (owner !== undefined) owner.server = undefined
      free.push(backend)
      for (const each of clients) if (each.queue.length > 0) serve(each)
    })
    socket.on('data', chunk => {
      client.queue.push(chunk)
      serve(client)
    })
    socket.once('close', () => {
      clients.delete(client)
      backend.socket.destroy()
    })
    backend.socket.on('error', () => undefined)
    backend.socket.once('close', () => backend.client?.socket.destroy())
  })
}

/** Cuts what a server says into its messages: a type, a length that counts itself, the rest. */
function frames(socket: Socket, take: (type: number, frame: Buffer) => void): void {
  let rest = Buffer.alloc(0)
  socket.on('data', chunk => {
    rest = Buffer.concat([rest, chunk])
    while (rest.length > 4) {
      const length = rest.readInt32BE(1) + 1
      if (rest.length < length) return
      const frame = Buffer.from(rest.subarray(0, length))
      rest = rest.subarray(length)
      take(frame[0] ?? 0, frame)
    }
  })
}
