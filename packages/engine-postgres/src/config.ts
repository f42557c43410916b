/** What a user says about a pool in PostgreSQL, and its check. */
import { InvalidArgumentError } from '@alkblobs/core/engine'
import { type ConnectionConfig, Sessions } from '@alkblobs/postgres-session'

export interface PostgresConfig extends ConnectionConfig {
  /** The schema that belongs to the pool alone; made by the first write. By default `alkblobs`. */
  readonly schema?: string
  /** Most connections this engine opens, 2 to 1,000, by default 10. A sweep holds one of them from its beginning to its end. */
  readonly poolMax?: number
}

export interface CheckedConfig {
  readonly connection: ConnectionConfig & { readonly poolMax: number }
  readonly schema: string
}

const SCHEMA_DEFAULT = 'alkblobs'
const POOL_MAX_DEFAULT = 10
/** Names longer than this are cut by the server, so that two of them could be one. */
const NAME_BYTES_MAX = 63

/** @throws InvalidArgumentError (`ERR_BLOB_INVALID_ARGUMENT`) that names the option, without repeating what was given. */
export function checkConfig(config: PostgresConfig): CheckedConfig {
  if (typeof config !== 'object' || config === null) {
    throw new InvalidArgumentError('config', 'an object with a url, or with host, user and database')
  }
  const { schema = SCHEMA_DEFAULT, poolMax = POOL_MAX_DEFAULT, ...connection } = config
  if (!isSchemaName(schema)) {
    throw new InvalidArgumentError('schema', 'a name of 1 to 63 bytes that does not begin with pg_')
  }
  if (!Number.isInteger(poolMax) || poolMax < 2 || poolMax > 1_000) {
    throw new InvalidArgumentError('poolMax', 'a whole number from 2 to 1000')
  }
  const checked = { ...connection, poolMax }
  // Sessions check what concerns them, and open nothing before they are asked.
  new Sessions(checked, { connectTimeoutMs: 1, lockTimeoutMs: 1 })
  return { connection: checked, schema }
}

function isSchemaName(name: unknown): name is string {
  if (typeof name !== 'string' || name === '' || name.includes('\0') || name.startsWith('pg_')) return false
  return name !== 'information_schema' && Buffer.byteLength(name) <= NAME_BYTES_MAX
}
