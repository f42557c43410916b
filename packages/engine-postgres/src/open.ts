/** Opens a pool: looks at the server and the schema, makes nothing. */
import { createRequire } from 'node:module'
import { type Durability, type Engine, EngineFault, type OpenContext } from '@alkblobs/core/engine'
import { openCatalog } from '@alkblobs/postgres-catalog'
import { Sessions } from '@alkblobs/postgres-session'
import { classify } from './classify.js'
import type { CheckedConfig } from './config.js'

// The manifest lies one folder above this file, in the sources as in the package.
const { version } = createRequire(import.meta.url)('../package.json') as { version: string }

/** A body passes through memory whole, here and in the server; larger ones belong to a body store. */
const INLINE_LENGTH_MAX = 16 * 1024 * 1024

export async function openPool({ connection, schema }: CheckedConfig, context: OpenContext): Promise<Engine> {
  const { algorithm, connectTimeoutMs, lockTimeoutMs } = context
  const sessions = new Sessions(connection, { connectTimeoutMs, lockTimeoutMs })
  try {
    const durability = await durabilityOf(sessions, connectTimeoutMs)
    const settings = {
      schema,
      algorithm,
      lockTimeoutMs,
      inlineLengthMax: INLINE_LENGTH_MAX,
      poolMax: connection.poolMax
    }
    const { catalog, endLeases } = await openCatalog(sessions, settings, callWithin(connectTimeoutMs))
    const close = async () => {
      await endLeases()
      await sessions.close()
    }
    return { name: 'postgres', version, durability, catalog, classify, close }
  } catch (error) {
    await sessions.close()
    // Before there is an engine nobody can ask its `classify` (ENG-OPEN-3).
    throw error instanceof EngineFault
      ? error
      : new EngineFault(classify(error), 'the database cannot be opened as a pool', error)
  }
}

/** What the server does with what it has committed is its operator's choice; `fsync = off` is for data that may be lost. */
async function durabilityOf(sessions: Sessions, timeoutMs: number): Promise<Durability> {
  const ask = "SELECT current_setting('fsync')"
  const rows = await sessions.use(callWithin(timeoutMs), session => session.rows<[string]>(ask))
  return rows[0]?.[0] === 'on' ? 'disk' : 'os'
}

function callWithin(ms: number): { deadlineMs: number } {
  return { deadlineMs: performance.now() + ms }
}
