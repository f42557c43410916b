/** Counts what tests left on a server: everything with the kit's prefix, and everything in the database they share. */
import { NAME_PREFIX } from './fresh.js'
import type { TestServer } from './server.js'
import { sharedServer } from './shared.js'
import { clientOf } from './sql.js'

export interface Residue {
  readonly databases: number
  readonly schemas: number
  /** Tables, views, sequences and indexes of the `public` schema of the shared database. */
  readonly relations: number
  readonly roles: number
  readonly largeObjects: number
  readonly advisoryLocks: number
  /** Sessions of clients other than this kit's. */
  readonly sessions: number
  readonly preparedTransactions: number
}

const COUNT = `
  SELECT
    (SELECT count(*) FROM pg_database WHERE starts_with(datname, $1))::int AS databases,
    (SELECT count(*) FROM pg_namespace WHERE nspname NOT IN ('public', 'information_schema')
       AND NOT starts_with(nspname, 'pg_'))::int AS schemas,
    (SELECT count(*) FROM pg_class WHERE relnamespace = 'public'::regnamespace)::int AS relations,
    (SELECT count(*) FROM pg_roles WHERE starts_with(rolname, $1))::int AS roles,
    (SELECT count(*) FROM pg_largeobject_metadata)::int AS "largeObjects",
    (SELECT count(*) FROM pg_locks WHERE locktype = 'advisory')::int AS "advisoryLocks",
    (SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend'
       AND application_name <> 'alkblobs-testkit')::int AS sessions,
    (SELECT count(*) FROM pg_prepared_xacts)::int AS "preparedTransactions"`

/**
 * What is left on the server of the run, or on the one given. The whole server is counted, so tests that run at the same time
 * count too: a test of nothing left has a server of its own, or compares the names that it made.
 */
export async function residue(server?: TestServer): Promise<Residue> {
  const client = clientOf(server ?? (await sharedServer()))
  try {
    const [row] = await client.query(COUNT, [NAME_PREFIX])
    return row as unknown as Residue
  } finally {
    await client.close()
  }
}
