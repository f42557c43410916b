/** Names what the sessions, the server and this engine throw. */
import type { ErrorCode } from '@alkblobs/core/engine'
import { classifyPostgres } from '@alkblobs/postgres-session'

export function classify(error: unknown): ErrorCode {
  return classifyPostgres(error)
}
