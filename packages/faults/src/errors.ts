/**
 * Errors as drivers throw them, so that the engine's own `classify` has to know them. Each carries a mark by which a test tells
 * it from an error that happened by itself.
 */

const injected = new WeakSet<Error>()

/** Whether the error, or what caused it, was made here. */
export function isInjected(error: unknown): boolean {
  for (let each = error; each instanceof Error; each = each.cause) if (injected.has(each)) return true
  return false
}

function marked<E extends Error>(error: E): E {
  injected.add(error)
  return error
}

const ERRNO: Readonly<Record<string, number>> = { ENOSPC: 28, EMFILE: 24, EIO: 5, ECONNRESET: 104, ETIMEDOUT: 110 }

/** As the system answers a failed call: `ENOSPC: injected, write`. */
export function systemError(code: string, syscall = 'write'): NodeJS.ErrnoException {
  const error: NodeJS.ErrnoException = new Error(`${code}: injected, ${syscall}`)
  error.code = code
  error.syscall = syscall
  if (ERRNO[code] !== undefined) error.errno = -ERRNO[code]
  return marked(error)
}

/** As `better-sqlite3` throws: `code` is SQLite's extended result code by name. */
export function sqliteError(code: string): Error & { readonly code: string } {
  const error = Object.assign(new Error(`injected (${code})`), { code })
  error.name = 'SqliteError'
  return marked(error)
}

/** As a PostgreSQL server answers: `code` is the SQLSTATE. */
export function serverError(code: string, severity: 'ERROR' | 'FATAL' = 'ERROR'): Error & { readonly code: string } {
  const error = Object.assign(new Error(`injected (${code})`), { code, severity })
  error.name = 'ServerError'
  return marked(error)
}

/** As V8 refuses memory. */
export function memoryError(): RangeError {
  return marked(new RangeError('Array buffer allocation failed'))
}

/** What an engine is made of decides what its driver throws. */
export type Driver = 'memory' | 'files' | 'sqlite' | 'postgres'

/** No space is left. Every `classify` must answer `full`. */
export function fullDisk(driver: Driver): Error {
  switch (driver) {
    case 'memory':
      return memoryError()
    case 'files':
      return systemError('ENOSPC')
    case 'sqlite':
      return sqliteError('SQLITE_FULL')
    case 'postgres':
      return serverError('53100')
  }
}

/** Out of descriptors or connections. Every `classify` must answer `exhausted`; memory has none, and answers `undefined`. */
export function outOfDescriptors(driver: Driver): Error | undefined {
  switch (driver) {
    case 'memory':
      return undefined
    case 'files':
      return systemError('EMFILE', 'open')
    case 'sqlite':
      return systemError('EMFILE', 'open')
    case 'postgres':
      return serverError('53300', 'FATAL')
  }
}

/** The medium is away for now. Every `classify` but that of memory must answer `transient`. */
export function away(driver: Driver): Error {
  switch (driver) {
    case 'memory':
      return memoryError()
    case 'files':
      return systemError('ENODEV', 'read')
    case 'sqlite':
      return sqliteError('SQLITE_IOERR_READ')
    case 'postgres':
      return systemError('ECONNRESET', 'read')
  }
}
