/** Names the failures of a server and of the way to it. */
import { EngineFault, type ErrorCode } from '@alkblobs/core/engine'

/** SQLSTATEs, the longest that fits first. */
const STATES: readonly (readonly [prefix: string, code: ErrorCode])[] = [
  // Lost against another transaction, or waited too long for its locks.
  ['40', 'conflict'],
  ['55P03', 'conflict'],
  ['55006', 'conflict'],
  ['53100', 'full'],
  ['53', 'exhausted'],
  ['08', 'transient'],
  // The session was ended: by an administrator, a crash, a start, a timeout, a dropped database.
  ['57P', 'transient'],
  ['25P03', 'transient'],
  ['25P04', 'transient'],
  // Cancelled by somebody, or by the server's own limit.
  ['57014', 'transient'],
  // Files and disks of the server: it may be a cable or a mount; the data is not judged by it.
  ['58', 'transient'],
  ['XX001', 'corrupt'],
  ['XX002', 'corrupt'],
  ['25006', 'denied'],
  ['28', 'denied'],
  ['3D000', 'denied'],
  ['42501', 'denied']
]

const SYSTEM: Readonly<Record<string, ErrorCode>> = {
  CONNECTION_CLOSED: 'transient',
  CONNECTION_ENDED: 'transient',
  CONNECTION_DESTROYED: 'transient',
  CONNECT_TIMEOUT: 'transient',
  ECONNRESET: 'transient',
  ECONNREFUSED: 'transient',
  ECONNABORTED: 'transient',
  EPIPE: 'transient',
  ETIMEDOUT: 'transient',
  EHOSTUNREACH: 'transient',
  EHOSTDOWN: 'transient',
  ENETUNREACH: 'transient',
  ENETDOWN: 'transient',
  ENOTFOUND: 'transient',
  EAI_AGAIN: 'transient',
  ERR_STREAM_DESTROYED: 'transient',
  // The folder of a Unix socket, while the server is down.
  ENOENT: 'transient',
  EMFILE: 'exhausted',
  ENFILE: 'exhausted',
  ENOBUFS: 'exhausted',
  EADDRNOTAVAIL: 'exhausted',
  EACCES: 'denied',
  EPERM: 'denied',
  SASL_SIGNATURE_MISMATCH: 'denied'
}

export function classifyPostgres(error: unknown): ErrorCode {
  if (error instanceof EngineFault) return error.code
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined
  if (typeof code !== 'string') return 'unknown'
  if (/^[0-9A-Z]{5}$/.test(code)) {
    const state = STATES.find(([prefix]) => code.startsWith(prefix))
    if (state !== undefined) return state[1]
  }
  return SYSTEM[code] ?? (/CERT|TLS|SSL|ISSUER|SIGNATURE/.test(code) ? 'denied' : 'unknown')
}

/** Whether a session that answered so should serve nobody any more, though its connection may still be there. */
export function endsSession(error: unknown): boolean {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined
  const severity = (error as { readonly severity?: unknown } | undefined)?.severity
  if (severity === 'FATAL' || severity === 'PANIC') return true
  if (typeof code !== 'string') return false
  // A server that became a standby; plans that a changed table has made stale; prepared statements somebody has dropped.
  return /^(25006|0A000|26000|57P..|08...)$/.test(code)
}
