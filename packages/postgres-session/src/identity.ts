/** Which server, database and timeline a session is on. */
import type { ServerIdentity } from '@alkblobs/core/engine'
import type { Session } from './session.js'

/**
 * The timeline is that of the log being written, where one is written: a promotion shows at once, and in the control file only after
 * its next checkpoint.
 */
const IDENTITY = `
  SELECT system_identifier::text,
         (SELECT oid::text FROM pg_catalog.pg_database WHERE datname = pg_catalog.current_database()),
         CASE WHEN pg_catalog.pg_is_in_recovery() THEN (SELECT timeline_id FROM pg_catalog.pg_control_checkpoint())
         ELSE ('x' || substr(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_lsn()), 1, 8))::bit(32)::integer END
  FROM pg_catalog.pg_control_system()`

/** ENG-SERVER-1. @throws the server's refusal where the role may not ask (the functions are everybody's unless revoked). */
export async function identityOf(session: Session): Promise<ServerIdentity> {
  const [row] = await session.rows<[string, string, number]>(IDENTITY)
  const [system, database, timeline] = row as [string, string, number]
  return { system, database, timeline: Number(timeline) }
}
