/**
 * Errors without secrets. The driver hangs the statement and its parameters on what it throws, and the server repeats values
 * in details; neither leaves this package.
 */
import { EngineFault } from '@alkblobs/core/engine'

/** An ERROR that the server answered. `code` is its SQLSTATE. */
export class ServerError extends Error {
  readonly code: string
  /** `ERROR`: the statement failed. `FATAL` and `PANIC`: the session is over. */
  readonly severity: string
  readonly constraint?: string
  readonly table?: string

  constructor(from: ServerFields) {
    super(messageOf(from))
    this.name = 'ServerError'
    this.code = from.code ?? ''
    this.severity = from.severity ?? 'ERROR'
    if (from.constraint_name !== undefined) this.constraint = from.constraint_name
    if (from.table_name !== undefined) this.table = from.table_name
  }
}

/** A server that is none may leave out anything. */
export interface ServerFields {
  readonly message: string
  readonly code?: string
  readonly severity?: string
  readonly constraint_name?: string
  readonly table_name?: string
}

/** A failure of the connection, with the driver's or the system's code. */
export class ConnectionError extends Error {
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.name = 'ConnectionError'
    this.code = code
  }
}

const FIELDS: Readonly<Record<string, keyof ServerFields>> = {
  V: 'severity',
  C: 'code',
  M: 'message',
  n: 'constraint_name',
  t: 'table_name'
}

/** Out of the body of an `E`: each field a letter and a text that ends in a zero; so does the list. `undefined` if it is none. */
export function fieldsOf(body: Buffer): ServerFields | undefined {
  const fields: { -readonly [K in keyof ServerFields]: ServerFields[K] } = { message: '' }
  let at = 0
  while (at < body.length && body[at] !== 0) {
    const end = body.indexOf(0, at)
    if (end < 0) return undefined
    const name = FIELDS[String.fromCharCode(body[at] as number)]
    if (name !== undefined) fields[name] = body.toString('utf8', at + 1, end)
    at = end + 1
  }
  return at === body.length - 1 && /^[0-9A-Z]{5}$/.test(fields.code ?? '') ? fields : undefined
}

/** Whoever talks so is no server, or something on the way has changed what it said. */
export function unreadable(): EngineFault {
  return new EngineFault('transient', 'an answer of the server cannot be read')
}

/** Whose turn it is to speak is not clear any more: what comes may be the answer to something else. */
export function unasked(): EngineFault {
  return new EngineFault('transient', 'the server said something that was not asked')
}

/** What may be told of an error that came from the driver or the socket. Our own errors pass as they are. */
export function withoutSecrets(error: unknown): unknown {
  if (!(error instanceof Error)) return error
  if (error.name === 'PostgresError') return new ServerError(error as unknown as ServerFields)
  const { code } = error as NodeJS.ErrnoException
  const isDrivers =
    'query' in error || 'parameters' in error || (typeof code === 'string' && code.startsWith('CONNECTION_'))
  if (!isDrivers && typeof code !== 'string') return error
  if (error instanceof ConnectionError || 'cause' in error) return error
  if (error.name === 'EngineFault') return error
  return new ConnectionError(
    typeof code === 'string' ? code : 'UNKNOWN',
    `the connection failed: ${code ?? error.name}`
  )
}

/** Class 22 is about values, and its messages quote them. */
function messageOf({ message, code = '' }: ServerFields): string {
  return code.startsWith('22') ? `a value was refused (${code})` : `${message} (${code})`
}
