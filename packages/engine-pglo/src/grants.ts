/**
 * Looks, when a store opens, whether the role may do all that will be asked of it: a right that is missing is better heard of now,
 * with its name, than in the middle of a put.
 */
import { EngineFault } from '@alkblobs/core/engine'
import type { Session } from '@alkblobs/postgres-session'
import { isMade, tablesOf } from './schema.js'

/** Functions of the server that this engine calls; a server made stricter by its owner may have revoked them. */
const FUNCTIONS = [
  'lo_from_bytea(oid, bytea)',
  'lo_put(oid, bigint, bytea)',
  'lo_get(oid, bigint, integer)',
  'lo_open(oid, integer)',
  'lo_lseek64(integer, bigint, integer)',
  'lo_truncate64(integer, bigint)',
  'lo_unlink(oid)'
] as const

/** Rights on each table: the claim is written once, and its row locked by whoever holds it alone. */
const RIGHTS = { claim: ['SELECT', 'INSERT', 'UPDATE'], entries: ['SELECT', 'INSERT', 'UPDATE', 'DELETE'] } as const

/** @throws EngineFault `denied` that lists what is missing, `foreign` or `newer` for tables that must be left alone. */
export async function checkGrants(session: Session, schema: string): Promise<void> {
  const missing = [...(await missingFunctions(session)), ...(await missingInSchema(session, schema))]
  if (missing.length > 0) throw new EngineFault('denied', `the role lacks ${missing.join('; ')}`)
}

async function missingFunctions(session: Session): Promise<string[]> {
  const values = FUNCTIONS.map(name => `('${name}')`).join(', ')
  const rows = await session.rows<[string]>(
    `SELECT name FROM (VALUES ${values}) AS f (name) WHERE NOT has_function_privilege('pg_catalog.' || name, 'EXECUTE')`
  )
  return rows.map(([name]) => `EXECUTE on ${name}`)
}

async function missingInSchema(session: Session, schema: string): Promise<string[]> {
  const [row] = await session.rows<[boolean | null, boolean | null, boolean]>(
    `SELECT has_schema_privilege(n.oid, 'USAGE'), has_schema_privilege(n.oid, 'CREATE'),
       has_database_privilege(current_database(), 'CREATE')
     FROM (SELECT) AS one LEFT JOIN pg_namespace n ON n.nspname = $1`,
    [schema]
  )
  const [mayUse, mayCreate, mayMakeSchemas] = row as [boolean | null, boolean | null, boolean]
  if (mayUse === null) return mayMakeSchemas ? [] : ['CREATE on the database, to make the schema']
  if (!mayUse) return ['USAGE on the schema']
  if (await isMade(session, schema)) return missingOnTables(session, schema)
  return mayCreate === true ? [] : ['CREATE on the schema, to make the tables']
}

async function missingOnTables(session: Session, schema: string): Promise<string[]> {
  const { claim, entries } = tablesOf(schema)
  const wanted = [...RIGHTS.claim.map(right => [claim, right]), ...RIGHTS.entries.map(right => [entries, right])]
  const missing: string[] = []
  for (const [table, right] of wanted as [string, string][]) {
    const [row] = await session.rows<[boolean]>('SELECT has_table_privilege($1::text, $2::text)', [table, right])
    if (row?.[0] !== true) missing.push(`${right} on ${table}`)
  }
  if (missing.length > 0) return missing
  // The server knows no rights on all large objects: what another role made can be neither read nor removed.
  const [foreign] = await session.rows(
    `SELECT FROM (SELECT loid FROM ${entries} ORDER BY stage LIMIT 1) e
     JOIN pg_largeobject_metadata m ON m.oid = e.loid WHERE NOT pg_has_role(m.lomowner, 'USAGE')`
  )
  return foreign === undefined ? [] : ['the rights of the role that owns the large objects; use one role for a pool']
}
