/**
 * The two tables, and the one look that tells whether they are there.
 *
 * | table      | one row for each                                                                                         |
 * |------------|----------------------------------------------------------------------------------------------------------|
 * | lo_claim   | pool (exactly one): whose bodies these are, and how often an exclusive claim was taken (`fence`)          |
 * | lo_entries | sealed body: the stage that made it, its object's oid, its key (32 raw bytes of the digest) and its length |
 *
 * A row and its object come and go in one transaction. `loid` is of type oid because `vacuumlo` removes every object that no
 * column of that type names; it is unique so that a number which the server gave out anew can never have two rows.
 * `dropping` marks a body that is so long that it is removed in several transactions: it counts as gone from the first one on.
 */
import { EngineFault } from '@alkblobs/core/engine'
import { qualified, quoteIdentifier, type Session } from '@alkblobs/postgres-session'
import { schemaLock } from './names.js'

/** Version of this layout; a schema with a later one is refused. */
export const FORMAT = 1

/** Names as they are written in a statement. */
export interface Tables {
  /** Without the schema. */
  readonly names: readonly string[]
  readonly schema: string
  readonly claim: string
  readonly entries: string
}

export function tablesOf(schema: string): Tables {
  return {
    names: ['lo_claim', 'lo_entries'],
    schema: quoteIdentifier(schema),
    claim: qualified(schema, 'lo_claim'),
    entries: qualified(schema, 'lo_entries')
  }
}

const layout = ({ claim, entries }: Tables) => [
  `CREATE TABLE ${claim} (
    one boolean PRIMARY KEY DEFAULT true CHECK (one), format integer NOT NULL,
    pool_id text NOT NULL, mode text NOT NULL CHECK (mode IN ('shared', 'exclusive')), fence bigint NOT NULL DEFAULT 0
  )`,
  `CREATE TABLE ${entries} (
    stage uuid PRIMARY KEY, loid oid NOT NULL UNIQUE,
    key bytea NOT NULL CHECK (octet_length(key) = 32), length bigint NOT NULL CHECK (length >= 0),
    dropping boolean NOT NULL DEFAULT false
  )`,
  `COMMENT ON TABLE ${claim} IS 'alkblobs: the pool whose large bodies this schema names'`,
  `COMMENT ON TABLE ${entries} IS 'alkblobs: one large object for each row; a row removed by hand orphans its object'`
]

/** The columns of both tables as the server tells them, to know a table of somebody else's with the same name. */
const COLUMNS = `
  SELECT c.relname::text, string_agg(a.attname || ' ' || format_type(a.atttypid, NULL), ', ' ORDER BY a.attnum)
  FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace
  JOIN pg_attribute a ON a.attrelid = c.oid AND a.attnum > 0 AND NOT a.attisdropped
  WHERE n.nspname = $1 AND c.relname IN ('lo_claim', 'lo_entries') GROUP BY c.relname ORDER BY c.relname`
const OURS: Readonly<Record<string, string>> = {
  lo_claim: 'one boolean, format integer, pool_id text, mode text, fence bigint',
  lo_entries: 'stage uuid, loid oid, key bytea, length bigint, dropping boolean'
}

/**
 * Whether the tables are there.
 * @throws EngineFault `foreign` for tables of somebody else, `newer` for those of a later version.
 */
export async function isMade(session: Session, schema: string): Promise<boolean> {
  const found = await session.rows<[string, string]>(COLUMNS, [schema])
  if (found.length === 0) return false
  if (found.length === 2 && found.every(([name, columns]) => OURS[name] === columns)) return true
  const [version] = await formatIn(session, schema, found)
  if (version !== undefined && version > FORMAT) {
    throw new EngineFault('newer', `the schema has format ${version}, this package knows ${FORMAT}`)
  }
  throw new EngineFault('foreign', 'the schema holds tables of these names that are of another make')
}

async function formatIn(session: Session, schema: string, found: readonly [string, string][]): Promise<number[]> {
  const hasFormat = found.some(([name, columns]) => name === 'lo_claim' && columns.includes('format integer'))
  if (!hasFormat) return []
  const rows = await session.rows<[number]>(`SELECT format FROM ${tablesOf(schema).claim}`)
  return rows.map(([format]) => Number(format))
}

/** Makes schema and tables where they are missing. Whoever comes second, of ten processes, waits and finds them made. */
export async function make(session: Session, schema: string): Promise<void> {
  const tables = tablesOf(schema)
  await session.rows('SELECT pg_advisory_xact_lock($1::bigint)', [schemaLock(schema)])
  if (await isMade(session, schema)) return
  const there = await session.rows('SELECT FROM pg_namespace WHERE nspname = $1', [schema])
  // Not `IF NOT EXISTS`: that asks for the right to create schemas even where there is nothing to create.
  if (there.length === 0) await session.run(`CREATE SCHEMA ${tables.schema}`)
  for (const statement of layout(tables)) await session.run(statement)
}
