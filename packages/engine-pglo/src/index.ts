/**
 * Large blobs as PostgreSQL large objects: a body store of alkblobs.
 *
 * Start at `schema.ts` (the tables), `medium.ts` (when absence is believed) and `bodies/held-transaction.ts` (how a long body is
 * written); the contract's methods are in `bodies/`.
 */
import type { EngineDefinition } from '@alkblobs/core/engine'
import { checkConfig, type PgloConfig } from './config.js'
import { openDatabase } from './open.js'

export type { PgloConfig } from './config.js'

/**
 * An engine that keeps bodies as large objects of a PostgreSQL database, with a row for each in a schema of its own. Opening looks
 * at the server and the role's rights, and makes nothing; the first write makes the schema.
 * @throws InvalidArgumentError for an option that is of the wrong type or out of bounds.
 */
export function pglo(config: PgloConfig): EngineDefinition {
  const checked = checkConfig(config)
  return { name: 'pglo', open: context => openDatabase(checked, context) }
}
