/**
 * Errors without secrets. The driver hangs the statement and its parameters on what it throws, and the server repeats values
 * in details; neither leaves this package.
 */

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
