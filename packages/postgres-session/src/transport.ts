/**
 * The socket under a session, made by us so that it can be ended by us: the driver neither connects nor encrypts.
 *
 *   1. TCP or Unix socket;
 *   2. where TLS is wanted: `SSLRequest` (8 bytes), one byte back, `S` or `N`; after `S` the TLS handshake.
 * Anything beside that one byte was sent by somebody who is not the server: nothing may be read before the encryption.
 */
import { connect as connectSocket, isIP, type Socket } from 'node:net'
import { type ConnectionOptions, connect as connectTls } from 'node:tls'
import { EngineFault } from '@alkblobs/core/engine'
import type { Channel } from './channel.js'
import type { CheckedConfig } from './config.js'
import { unreadable } from './failure.js'

/** Length 8, then the code 80877103. */
const SSL_REQUEST = Buffer.from([0, 0, 0, 8, 0x04, 0xd2, 0x16, 0x2f])
const YES = 'S'.charCodeAt(0)
const NO = 'N'.charCodeAt(0)
const ERROR = 'E'.charCodeAt(0)
/** A silent peer is asked after this long; the system then gives it some tens of seconds. */
const KEEP_ALIVE_MS = 10_000

/** Connects a channel; `onSocket` learns of every socket as soon as there is one, so that patience that ends can end it. */
export async function openTransport(
  config: CheckedConfig,
  channel: Channel,
  onSocket: (socket: Socket) => void
): Promise<void> {
  const { host, port, tls } = config
  const wanted = host.startsWith('/') ? false : tls
  const isPlain = wanted === false
  const socket = connectSocket({
    ...(host.startsWith('/') ? { path: `${host}/.s.PGSQL.${port}` } : { host, port }),
    ...(isPlain && { onread: channel.reading() })
  })
  onSocket(socket)
  await event(socket, 'connect')
  socket.setNoDelay(true)
  socket.setKeepAlive(true, KEEP_ALIVE_MS)
  channel.carry(isPlain ? socket : await secured(socket, config, onSocket), isPlain)
}

async function secured(
  socket: Socket,
  { host, tls: wanted }: CheckedConfig,
  onSocket: (socket: Socket) => void
): Promise<Socket> {
  if (!(await offersTls(socket))) {
    if (wanted === 'prefer') return socket
    socket.destroy()
    throw new EngineFault('denied', 'the server offers no TLS')
  }
  const secure = connectTls({ ...tlsOptions(wanted), socket, ...(isIP(host) === 0 ? { servername: host } : {}) })
  onSocket(secure)
  await event(secure, 'secureConnect')
  return secure
}

function tlsOptions(wanted: CheckedConfig['tls']): ConnectionOptions {
  if (typeof wanted === 'object') return wanted
  return { rejectUnauthorized: wanted === true || wanted === 'verify-full' }
}

async function offersTls(socket: Socket): Promise<boolean> {
  socket.write(SSL_REQUEST)
  const answer = await event<Buffer>(socket, 'data')
  socket.pause()
  const [byte] = answer
  // A server that cannot even begin says so without having read what is asked.
  if (byte === ERROR) throw unreadable()
  if (answer.length !== 1 || (byte !== YES && byte !== NO)) {
    socket.destroy()
    throw new EngineFault('denied', 'the answer to the request for TLS is not the one of a PostgreSQL server')
  }
  // The driver starts to listen later, and does not make a paused socket flow again; until it has spoken, nothing comes.
  if (byte === NO) socket.resume()
  return byte === YES
}

/** The first such event; an error or the end of the socket rejects. */
function event<T>(socket: Socket, name: string): Promise<T> {
  return new Promise((resolve, reject) => {
    const settle = (then: () => void) => {
      socket.off(name, happen).off('error', fail).off('close', close)
      then()
    }
    const happen = (value: T) => settle(() => resolve(value))
    const fail = (error: Error) => settle(() => reject(error))
    const close = () => fail(new EngineFault('transient', 'the connection was closed before it was ready'))
    socket.once(name, happen).once('error', fail).once('close', close)
  })
}
