/** Opens a database: looks at it, makes nothing. */
import { createRequire } from 'node:module'
import { type Durability, type Engine, EngineFault, type OpenContext } from '@alkblobs/core/engine'
import { openCatalog } from '@alkblobs/postgres-catalog'
import { Sessions } from '@alkblobs/postgres-session'
import { openBodies } from './bodies/index.js'
import { classify } from './classify.js'
import type { CheckedConfig } from './config.js'
import { checkGrants } from './grants.js'
import type { Medium } from './medium.js'
import { tablesOf } from './schema.js'

// The manifest lies one folder above this file, in the sources as in the package.
const { version } = createRequire(import.meta.url)('../package.json') as { version: string }

/** Bodies of keys in memory do not come here, but one that was found broken here may be healed by a short one. */
const INLINE_LENGTH_MAX = 16 * 1024 * 1024
/** Publications share the sessions with bodies, and take one at a time. */
const POOL_MAX_SHARED = 3

export async function openDatabase(config: CheckedConfig, context: OpenContext): Promise<Engine> {
  const { connectTimeoutMs, lockTimeoutMs, algorithm } = context
  const timeouts = { connectTimeoutMs, lockTimeoutMs }
  const sessions = new Sessions(config.connection, timeouts)
  const holderSessions = new Sessions({ ...config.connection, poolMax: 2 }, timeouts)
  try {
    const durability = await inspect(sessions, config.schema, connectTimeoutMs)
    const medium: Medium = {
      sessions,
      holderSessions,
      schema: config.schema,
      tables: tablesOf(config.schema),
      algorithm,
      stageIdleTimeoutMs: config.stageIdleTimeoutMs,
      poolId: undefined,
      claim: undefined,
      holder: undefined
    }
    const { catalog, endLeases } = await openCatalogBeside(medium, context)
    const close = async () => {
      await endLeases()
      await medium.holder?.release()
      await Promise.all([sessions.close(), holderSessions.close()])
    }
    return { name: 'pglo', version, durability, catalog, bodies: openBodies(medium), classify, close }
  } catch (error) {
    await Promise.all([sessions.close(), holderSessions.close()])
    throw error instanceof EngineFault
      ? error
      : new EngineFault(classify(error), 'the database cannot be opened for large objects', error)
  }
}

/** For a store whose kv tier keeps no durable catalog of its own; any other never calls it, and its tables are never made. */
function openCatalogBeside({ sessions, holderSessions, schema, tables }: Medium, context: OpenContext) {
  const { algorithm, lockTimeoutMs, connectTimeoutMs } = context
  const settings = {
    schema,
    algorithm,
    lockTimeoutMs,
    inlineLengthMax: INLINE_LENGTH_MAX,
    poolMax: POOL_MAX_SHARED,
    beside: tables.names,
    // Bodies being written hold sessions for as long as they take; a sweep must not wait for them.
    leaseSessions: holderSessions
  }
  return openCatalog(sessions, settings, { deadlineMs: performance.now() + connectTimeoutMs })
}

/** ENG-OPEN-2, the rights, and what the server promises for what it has committed. */
function inspect(sessions: Sessions, schema: string, timeoutMs: number): Promise<Durability> {
  return sessions.use({ deadlineMs: performance.now() + timeoutMs }, async session => {
    await checkGrants(session, schema)
    const [row] = await session.rows<[string]>(`SELECT current_setting('fsync')`)
    return row?.[0] === 'on' ? 'disk' : 'os'
  })
}
