/** The server that the catalog is on, and whether a fleet can share it. */
import type { ServerCatalog } from '@alkblobs/core/engine'
import { identityOf } from '@alkblobs/postgres-session'
import type { Pool } from '../pool.js'

/** The oldest version that waits for a terminated session (`pg_terminate_backend` with a timeout) and notices a dead client while it works. */
const VERSION_MIN = 14

export function serverOf(pool: Pool, sessionsMax: number): ServerCatalog {
  return {
    sessionsMax,
    identity: call => pool.sessions.ask(call, identityOf),
    unfit: call =>
      pool.sessions.ask(call, async session => {
        const [row] = await session.rows<[string, boolean]>(
          "SELECT current_setting('server_version_num'), pg_catalog.pg_is_in_recovery()"
        )
        const [version, isStandby] = row as [string, boolean]
        const major = Math.floor(Number(version) / 10_000)
        if (major < VERSION_MIN) return `it is PostgreSQL ${major}, and at least ${VERSION_MIN} is needed`
        return isStandby ? 'it is a standby, which takes no writes' : undefined
      })
  }
}
