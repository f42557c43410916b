/** Ends TLS in front of a server that has none. The key and its certificate, for `localhost`, are for tests alone. */
import { connect } from 'node:net'
import { createSecureContext, TLSSocket } from 'node:tls'
import { listen, type Place } from './wire.js'

export const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBlDCCATugAwIBAgIUUAz98NCi6de8vJa/oewHqIunkS8wCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEzMDExMjUyOVoYDzIxMjYxMTA2
MTEyNTI5WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQCWLxc75g0kPvEUSl7bm/zgfhL435wJdpY7HcV7ZdRPWyriuvRVVXM
B9+IIuKO0bcQpcGczfXGxVDWDfWhY3Ljo2kwZzAdBgNVHQ4EFgQUlvHbMLGQ2RYA
5A4jGcvG+/1e99UwHwYDVR0jBBgwFoAUlvHbMLGQ2RYA5A4jGcvG+/1e99UwDwYD
VR0TAQH/BAUwAwEB/zAUBgNVHREEDTALgglsb2NhbGhvc3QwCgYIKoZIzj0EAwID
RwAwRAIgOkLtyAL25JKYX+hFjZzlpT8NSPHqZgGLe3/9XG9EstsCICEsrMmE5BTX
PzVwm3x8tkqVVEt5/t6nNHmnBP1CgRrk
-----END CERTIFICATE-----
`

const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgV9yr7fyL4pSg/tFc
8rW9HNfIAN++kiPjCCqgN5W47eWhRANCAAQCWLxc75g0kPvEUSl7bm/zgfhL435w
JdpY7HcV7ZdRPWyriuvRVVXMB9+IIuKO0bcQpcGczfXGxVDWDfWhY3Lj
-----END PRIVATE KEY-----
`

/** Answers a request for TLS with `answer`, by default yes, and goes on in TLS. */
export function tlsProxy(target: Place, answer = Buffer.from('S')): Promise<number> {
  return listen(socket => {
    socket.once('data', () => {
      socket.write(answer)
      const secureContext = createSecureContext({ key: KEY, cert: CERTIFICATE })
      const secure = new TLSSocket(socket, { isServer: true, secureContext })
      const server = connect(target)
      secure.on('error', () => server.destroy())
      server.on('error', () => secure.destroy())
      secure.pipe(server).pipe(secure)
    })
  })
}
