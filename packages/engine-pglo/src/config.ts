/** What a user says about large objects in a database, and its check. */
import { InvalidArgumentError } from '@alkblobs/core/engine'
import { type ConnectionConfig, Sessions } from '@alkblobs/postgres-session'

export interface PgloConfig extends ConnectionConfig {
  /** The schema for this engine's two tables; made by the first write. By default `alkblobs_pglo`. */
  readonly schema?: string
  /**
   * Most connections at once, 2 to 1,000, by default 10. Each body longer than 1 MiB that is being written has one of its own; one is
   * never theirs. A catalog in memory beside it costs one more.
   */
  readonly poolMax?: number
  /**
   * How long a body longer than 1 MiB may wait for its producer, in milliseconds, by default 60,000. Its bytes lie in an open
   * transaction until then, and one that stays open keeps the server from vacuuming.
   */
  readonly stageIdleTimeoutMs?: number
}

export interface CheckedConfig {
  readonly connection: ConnectionConfig
  readonly schema: string
  readonly stageIdleTimeoutMs: number
}

const SCHEMA_DEFAULT = 'alkblobs_pglo'
const STAGE_IDLE_TIMEOUT_MS = 60_000
/** Names longer than this are cut by the server, so that two of them could be one. */
const NAME_BYTES_MAX = 63

/** @throws InvalidArgumentError that names the option. */
export function checkConfig(config: PgloConfig): CheckedConfig {
  if (typeof config !== 'object' || config === null) {
    throw new InvalidArgumentError('config', 'an object with a url, or with host, user and database')
  }
  const { schema = SCHEMA_DEFAULT, stageIdleTimeoutMs = STAGE_IDLE_TIMEOUT_MS, ...connection } = config
  if (!isSchemaName(schema)) {
    throw new InvalidArgumentError('schema', 'a name of 1 to 63 bytes that does not begin with pg_')
  }
  if (!Number.isInteger(stageIdleTimeoutMs) || stageIdleTimeoutMs < 100 || stageIdleTimeoutMs > 86_400_000) {
    throw new InvalidArgumentError('stageIdleTimeoutMs', 'a whole number from 100 to 86400000')
  }
  // Opens nothing; the session package knows best what it takes.
  new Sessions(connection, { connectTimeoutMs: 1, lockTimeoutMs: 1 })
  return { connection, schema, stageIdleTimeoutMs }
}

function isSchemaName(name: unknown): name is string {
  if (typeof name !== 'string' || name === '' || name.includes('\0') || name.startsWith('pg_')) return false
  return name !== 'information_schema' && Buffer.byteLength(name) <= NAME_BYTES_MAX
}
