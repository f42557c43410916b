/**
 * A pool in a schema of PostgreSQL: the catalog, with small bodies inline as `bytea`.
 *
 * The catalog itself is `@alkblobs/postgres-catalog`, the sessions it speaks over are `@alkblobs/postgres-session`; here they
 * become an engine.
 */
import type { EngineDefinition } from '@alkblobs/core/engine'
import { checkConfig, type PostgresConfig } from './config.js'
import { openPool } from './open.js'

export type { PostgresConfig } from './config.js'

/**
 * An engine that keeps a pool in a schema of a PostgreSQL database. Opening looks at the server and makes nothing; the first
 * write makes the schema. Any number of processes and machines may use it at once.
 * @throws InvalidArgumentError (`ERR_BLOB_INVALID_ARGUMENT`) for an option that is of the wrong type or out of bounds.
 */
export function postgres(config: PostgresConfig): EngineDefinition {
  const checked = checkConfig(config)
  return { name: 'postgres', open: context => openPool(checked, context) }
}
