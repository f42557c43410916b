/** Names what the server, the session and this engine throw. */
import { EngineFault, type ErrorCode } from '@alkblobs/core/engine'
import { classifyPostgres } from '@alkblobs/postgres-session'

export function classify(error: unknown): ErrorCode {
  if (error instanceof EngineFault) return error.code
  return classifyPostgres(error)
}

/** The server's five-letter code, where the error has one. */
export function sqlStateOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined
  const { code } = error as { code?: unknown }
  if (typeof code === 'string' && /^[0-9A-Z]{5}$/.test(code)) return code
  return sqlStateOf(error.cause)
}
