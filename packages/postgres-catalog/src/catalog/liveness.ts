/**
 * Tables of the application that name live keys, judged by the server where entries are judged. They are never read into
 * this process, created, altered or owned.
 *
 *   name      `table` or `schema.table` (without a schema: `public`), each as it is written in the catalogs of the server, or in
 *             double quotes where a name contains a dot
 *   column    `text` or `varchar` in the written form of keys, or `bytea` of 32 bytes; NULL says nothing
 *   refused   what hides rows from us (row security that our role does not bypass, temporary and foreign tables, views), and
 *             any value that is no key of this pool: a typo there is a deleted blob here
 *
 * A table is resolved to its oid when it is registered and looked up again in every transaction that judges; under a lease it
 * is read through for values that are no keys once.
 */
import {
  type BlobKey,
  type Call,
  digestOf,
  EngineFault,
  type Lease,
  type SqlLiveness,
  type SqlSource
} from '@alkblobs/core/engine'
import { quoteIdentifier } from '@alkblobs/postgres-session'
import type { Connection } from '../connection.js'
import type { Pool } from '../pool.js'
import { sqlStateOf } from '../waiting.js'
import type { Leases } from './lease.js'

const LOOK = `
  WITH RECURSIVE part AS (
    SELECT c.oid, c.relkind FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
    WHERE n.nspname = $1 AND c.relname = $2
    UNION
    SELECT c.oid, c.relkind FROM pg_catalog.pg_class c JOIN pg_catalog.pg_inherits i ON i.inhrelid = c.oid
    JOIN part p ON p.oid = i.inhparent
  )
  SELECT c.oid::text, c.relkind::text, c.relpersistence::text,
         EXISTS (SELECT 1 FROM part p WHERE p.relkind = 'f'), pg_catalog.row_security_active(c.oid),
         a.attnum, pg_catalog.format_type(a.atttypid, NULL), pg_catalog.has_column_privilege(c.oid, a.attnum, 'SELECT'),
         (SELECT pg_catalog.bool_or(m.amname = 'btree') FROM pg_catalog.pg_index x
          JOIN pg_catalog.pg_class i ON i.oid = x.indexrelid JOIN pg_catalog.pg_am m ON m.oid = i.relam
          WHERE x.indrelid = c.oid AND x.indisvalid AND x.indpred IS NULL AND x.indkey[0] = a.attnum
            AND m.amname IN ('btree', 'hash'))
  FROM pg_catalog.pg_class c JOIN pg_catalog.pg_namespace n ON n.oid = c.relnamespace
  LEFT JOIN pg_catalog.pg_attribute a ON a.attrelid = c.oid AND a.attname = $3 AND a.attnum > 0 AND NOT a.attisdropped
  WHERE n.nspname = $1 AND c.relname = $2`

type Look = [
  oid: string,
  kind: string,
  persistence: string,
  hasForeignPart: boolean,
  isFiltered: boolean,
  attnum: number | null,
  type: string | null,
  mayRead: boolean | null,
  /** Whether an index of the whole column is in its order; null without one. */
  isOrdered: boolean | null
]

/** A registered table as it was found. */
interface Table {
  readonly name: string
  readonly schema: string
  readonly table: string
  readonly column: string
  readonly oid: string
  readonly attnum: number
  readonly type: 'text' | 'bytea'
  readonly hasIndex: boolean
  /** Whether the server can read its keys in the order of entries. */
  readonly isOrdered: boolean
}

/** SQL conditions, one for each table. */
export interface Judgement {
  /** Whether the key named by an SQL expression is referenced. */
  readonly conditionsFor: (key: string) => readonly string[]
  /** Whether it is not, for many keys of a range in their order: `within` says that a column is in it. */
  readonly unreferenced: (key: string, within: (column: string) => string) => readonly string[]
  /** Whether every table has an index, to be read in the order of keys or asked key by key. */
  readonly isOrdered: boolean
}

export class Tables implements SqlLiveness {
  readonly #pool: Pool
  readonly #leases: Leases
  readonly #tables = new Map<string, Table>()

  constructor(pool: Pool, leases: Leases) {
    this.#pool = pool
    this.#leases = leases
  }

  async register(source: SqlSource, call: Call): Promise<void> {
    const id = idOf(source)
    if (this.#tables.has(id)) return
    const table = await this.#pool.sessions.ask(call, async session => {
      const at = this.#pool.connection(session)
      const found = await lookUp(at, source)
      await readThrough(at, found, this.#pool.algorithm)
      return found
    })
    if (!table.hasIndex && !this.#tables.has(id)) {
      process.emitWarning(`liveness table ${table.name} has no index on the column: every sweep will be slow`, {
        code: 'ALKBLOBS_LIVENESS_INDEX'
      })
    }
    this.#tables.set(id, table)
  }

  unregister(source: SqlSource): void {
    this.#tables.delete(idOf(source))
  }

  async liveBy(key: BlobKey, call: Call): Promise<readonly string[]> {
    const tables = [...this.#tables.values()]
    if (tables.length === 0) return []
    return this.#pool.sessions.ask(call, async session => {
      const at = this.#pool.connection(session)
      await this.#confirm(at, tables)
      const conditions = tables.map(table => conditionOf(table, '$1::bytea', this.#pool.algorithm))
      const row = await judged(conditions, () => at.row<boolean[]>(`SELECT ${conditions.join(', ')}`, digestOf(key)))
      return tables.filter((_, i) => row?.[i]).map(({ name }) => name)
    })
  }

  async among(keys: readonly BlobKey[], lease: Lease | undefined, call: Call): Promise<readonly BlobKey[]> {
    if (this.#tables.size === 0) return []
    const seen = lease && this.#leases.held(lease).readThrough
    return this.#pool.sessions.ask(call, async session => {
      const at = this.#pool.connection(session)
      const conditions = (await this.judge(at, seen)).conditionsFor('k.key')
      const live = `SELECT encode(k.key, 'hex') FROM unnest($1::bytea[]) AS k (key) WHERE ${conditions.join(' OR ')}`
      const rows = await judged(conditions, () => at.rows<[string]>(live, keys.map(digestOf)))
      return rows.map(([hex]) => this.#pool.keyOf(hex))
    })
  }

  /**
   * The tables as they are to be judged in this transaction. Under a lease, `seen` holds those that were read through.
   * @throws EngineFault `liveness` for a table that is gone, changed, or holds something that is no key.
   */
  async judge(at: Connection, seen?: Set<object>): Promise<Judgement> {
    const tables = [...this.#tables.values()]
    await this.#confirm(at, tables)
    for (const table of tables) {
      if (seen === undefined || seen.has(table)) continue
      await readThrough(at, table, this.#pool.algorithm)
      seen.add(table)
    }
    const { algorithm } = this.#pool
    return {
      conditionsFor: key => tables.map(table => conditionOf(table, key, algorithm)),
      unreferenced: (key, within) => tables.map(table => absenceOf(table, key, within, algorithm)),
      isOrdered: tables.every(({ hasIndex }) => hasIndex)
    }
  }

  async #confirm(at: Connection, tables: readonly Table[]): Promise<void> {
    for (const table of tables) {
      const now = await lookUp(at, { table: written(table), column: table.column })
      if (now.oid !== table.oid || now.attnum !== table.attnum || now.type !== table.type) {
        throw new EngineFault('liveness', `${table.name} is not the table that was registered`)
      }
    }
  }
}

/** Runs a statement that judges by these conditions: if it cannot read the tables, nobody knows what they say. */
export async function judged<T>(conditions: readonly string[], statement: () => Promise<T>): Promise<T> {
  if (conditions.length === 0) return statement()
  try {
    return await statement()
  } catch (error) {
    // Undefined table, schema or column, no right to read, a changed type.
    if (['42P01', '3F000', '42703', '42501', '42883'].includes(sqlStateOf(error) ?? '')) {
      throw new EngineFault('liveness', 'a liveness table cannot be read', error)
    }
    throw error
  }
}

async function lookUp(at: Connection, { table: text, column }: SqlSource): Promise<Table> {
  const [schema, table] = partsOf(text)
  const name = `${text}.${column}`
  const refuse = (why: string): never => {
    throw new EngineFault('liveness', `${name} cannot protect: ${why}`)
  }
  const row = await at.row<Look>(LOOK, schema, table, column)
  if (row === undefined) return refuse('there is no such table')
  const [oid, kind, persistence, hasForeignPart, isFiltered, attnum, type, mayRead, isOrdered] = row
  if (kind !== 'r' && kind !== 'p') return refuse('it is no table')
  if (persistence === 't') return refuse('a temporary table is seen by one session alone')
  if (hasForeignPart) return refuse('a foreign table may hide rows')
  if (isFiltered) return refuse('row security may hide rows from this role')
  if (attnum === null) return refuse('there is no such column')
  if (mayRead !== true) return refuse('this role may not read the column')
  if (type !== 'text' && type !== 'character varying' && type !== 'bytea') return refuse(`the column is ${type}`)
  const isBytes = type === 'bytea'
  const found = { name, schema, table, column, oid, attnum, type: isBytes ? 'bytea' : 'text' } as const
  return { ...found, hasIndex: isOrdered !== null, isOrdered: isBytes && isOrdered === true }
}

/** @throws EngineFault `liveness` if the column holds anything that is no key of the pool. */
async function readThrough(at: Connection, table: Table, algorithm: string): Promise<void> {
  const column = `t.${quoteIdentifier(table.column)}`
  const isKey = table.type === 'bytea' ? `octet_length(${column}) = 32` : isWritten(column, algorithm)
  const statement = `SELECT 1 FROM ${relationOf(table)} t WHERE ${column} IS NOT NULL AND NOT (${isKey}) LIMIT 1`
  const wrong = await judged([isKey], () => at.session.rows(statement).catch(oneIfNoDigits))
  if (wrong.length > 0) throw new EngineFault('liveness', `${table.name} holds a value that is no key of this pool`)
}

/**
 * Reads digits as bytes and compares what they are written as: 0.6 microseconds a row, where a regular expression takes 7.6. Fails for what
 * are no digits at all. Byte by byte, for a column may have a collation for which capitals are the same.
 */
function isWritten(column: string, algorithm: string): string {
  const written = `'${algorithm}:' || encode(decode(substr(${column}, 8), 'hex'), 'hex')`
  return `CASE WHEN octet_length(${column}) = 71 THEN ${column} COLLATE "C" = ${written} ELSE false END`
}

/** The server does not answer that something is no digit, it refuses to read it. */
function oneIfNoDigits(error: unknown): readonly unknown[] {
  if (sqlStateOf(error) !== '22023') throw error
  return [[1]]
}

/** With an index the table is asked key by key; without one the server may prefer to read it once for all. */
function conditionOf(table: Table, key: string, algorithm: string): string {
  const value = table.type === 'bytea' ? key : `'${algorithm}:' || encode(${key}, 'hex')`
  const where = `FROM ${relationOf(table)} t WHERE t.${quoteIdentifier(table.column)} = ${value}`
  return table.hasIndex ? `coalesce((SELECT true ${where} LIMIT 1), false)` : `EXISTS (SELECT 1 ${where})`
}

/** With an index in the order of keys it is read beside the entries; texts are in an order of their own, and are looked up. */
function absenceOf(table: Table, key: string, within: (column: string) => string, algorithm: string): string {
  if (!table.isOrdered) return `NOT ${conditionOf(table, key, algorithm)}`
  const column = `t.${quoteIdentifier(table.column)}`
  return `NOT EXISTS (SELECT 1 FROM ${relationOf(table)} t WHERE ${column} = ${key} AND ${within(column)})`
}

function relationOf({ schema, table }: Table): string {
  return `${quoteIdentifier(schema)}.${quoteIdentifier(table)}`
}

function written({ schema, table }: Table): string {
  return relationOf({ schema, table } as Table)
}

function idOf({ table, column }: SqlSource): string {
  return JSON.stringify([...partsOf(table), column])
}

/** @throws EngineFault `liveness` for a text that names no table. */
function partsOf(text: string): [schema: string, table: string] {
  const parts = [...text.matchAll(/"((?:[^"]|"")+)"|([^".]+)|(\.)/g)]
  const names = parts
    .filter(part => part[3] === undefined)
    .map(part => part[1]?.replaceAll('""', '"') ?? (part[2] as string))
  const isWhole = parts.map(([whole]) => whole).join('') === text && parts.length === names.length * 2 - 1
  const [first, second] = names
  if (!isWhole || first === undefined || names.length > 2) {
    throw new EngineFault('liveness', `${text} names no table`)
  }
  return second === undefined ? ['public', first] : [first, second]
}
