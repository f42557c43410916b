/**
 * The engine-owned schema and how it comes to be. All times are the server's, all keys the 32 raw bytes of the digest, all
 * lengths bytes. What lies in it:
 *
 * | table     | one row for each                                                                                    |
 * |-----------|-----------------------------------------------------------------------------------------------------|
 * | alkblobs  | part of the schema and the version of its layout; marks the schema as ours                          |
 * | meta      | pool (exactly one): its record, NULL until there is one                                             |
 * | entries   | committed blob: its `body`, or the `locator` at which a body store keeps it                         |
 * | gc_pins   | key and holder; refers to the entry, so that no entry goes from under a pin                         |
 * | gc_window | candidate of a sweep (`mark` is '') or direct delete under way (its mark)                           |
 * | stages    | body being written                                                                                  |
 * | trash     | body that no entry uses                                                                             |
 *
 * Small rows that are updated in place keep a part of their pages free. Bodies are not compressed: they are stored out of
 * line as they are, and their length is known without reading them.
 *
 * A part of the schema is made, or brought to a later version, in one transaction behind an advisory lock of its own name,
 * which looks again once it has the lock: any number of processes may do it at once.
 */
import { createHash } from 'node:crypto'
import { type Call, EngineFault } from '@alkblobs/core/engine'
import { quoteIdentifier, type Session, type Sessions } from '@alkblobs/postgres-session'
import { Statements } from './connection.js'
import { isMissing, sqlStateOf } from './waiting.js'

/** A group of tables with a version of its own. `steps[i]` are the statements that lead from version i to i + 1. */
export interface SchemaPart {
  readonly name: string
  readonly steps: readonly (readonly string[])[]
}

export const CATALOG_PART: SchemaPart = {
  name: 'catalog',
  steps: [
    [
      `CREATE TABLE $.meta (
        one boolean PRIMARY KEY DEFAULT true CHECK (one),
        pool_id text, protocol integer, algorithm text, window_delay_ms bigint, bodies_claimed boolean,
        server_system text, server_database text, server_timeline bigint, forked_from text
      )`,
      'INSERT INTO $.meta DEFAULT VALUES',
      `CREATE TABLE $.entries (
        key bytea PRIMARY KEY CHECK (octet_length(key) = 32),
        length bigint NOT NULL,
        body bytea,
        locator text,
        CHECK ((body IS NULL) <> (locator IS NULL))
      )`,
      'ALTER TABLE $.entries ALTER COLUMN body SET STORAGE EXTERNAL',
      `CREATE TABLE $.gc_pins (
        key bytea NOT NULL REFERENCES $.entries ON DELETE NO ACTION,
        owner text NOT NULL,
        generation bigint NOT NULL,
        expires_at timestamptz NOT NULL,
        PRIMARY KEY (key, owner)
      ) WITH (fillfactor = 70)`,
      `CREATE TABLE $.gc_window (
        key bytea NOT NULL,
        mark text NOT NULL,
        staged_at timestamptz NOT NULL,
        delay_ms bigint NOT NULL,
        cancelled boolean NOT NULL DEFAULT false,
        PRIMARY KEY (key, mark)
      ) WITH (fillfactor = 80)`,
      "CREATE INDEX gc_window_due ON $.gc_window (staged_at, key) WHERE mark = ''",
      `CREATE TABLE $.stages (
        id text COLLATE "C" PRIMARY KEY,
        expires_at timestamptz NOT NULL
      ) WITH (fillfactor = 70)`,
      `CREATE TABLE $.trash (
        what text COLLATE "C" PRIMARY KEY,
        key bytea,
        length bigint,
        not_before timestamptz NOT NULL,
        attempts integer NOT NULL DEFAULT 0
      )`
    ]
  ]
}

const LOOK = `
  SELECT count(c.oid), coalesce(bool_or(c.relname = 'alkblobs' AND c.relkind = 'r'), false)
  FROM pg_catalog.pg_namespace n
  LEFT JOIN pg_catalog.pg_class c ON c.relnamespace = n.oid AND c.relkind IN ('r', 'p', 'v', 'm', 'f', 'S')
    AND c.relname <> ALL ($2::text[])
  WHERE n.nspname = $1 GROUP BY n.oid`
const VERSION = 'SELECT version FROM $.alkblobs WHERE part = $1'
const MARKER = 'CREATE TABLE IF NOT EXISTS $.alkblobs (part text PRIMARY KEY, version integer NOT NULL)'
const SET_VERSION = `
  INSERT INTO $.alkblobs (part, version) VALUES ($1, $2) ON CONFLICT (part) DO UPDATE SET version = excluded.version`

/** One part of one schema. */
export class Layout {
  readonly statements: Statements
  readonly #part: SchemaPart
  readonly #beside: readonly string[]

  /** `beside`: tables of an engine of ours that may lie in the schema too. */
  constructor(schema: string, part: SchemaPart, beside: readonly string[] = []) {
    this.statements = new Statements(schema)
    this.#part = part
    this.#beside = beside
  }

  get latest(): number {
    return this.#part.steps.length
  }

  /**
   * The version of the part that is there; 0 where there is none.
   * @throws EngineFault `foreign` for a schema of something else, `newer` for a later version.
   */
  async version(session: Session): Promise<number> {
    const { schema } = this.statements
    const [tables, isOurs] = (await session.rows<[bigint, boolean]>(LOOK, [schema, this.#beside]))[0] ?? [0n, false]
    if (!isOurs) {
      // An empty schema is one that somebody made for us.
      if (Number(tables) === 0) return 0
      throw new EngineFault('foreign', 'the schema holds tables of something else')
    }
    const version = await this.#recorded(session)
    if (version > this.latest) {
      throw new EngineFault('newer', `the schema has layout ${version}, this package knows ${this.latest}`)
    }
    return version
  }

  /** Makes the part, or brings it up to date; whoever comes second finds it made. */
  async make(sessions: Sessions, call: Call): Promise<void> {
    await sessions.transaction(call, async session => {
      await session.rows('SELECT pg_catalog.pg_advisory_xact_lock($1::bigint)', [
        advisoryKey('schema', this.statements.schema)
      ])
      const version = await this.version(session)
      if (version === this.latest) return
      const schema = quoteIdentifier(this.statements.schema)
      // Asked first: IF NOT EXISTS would want the right to create schemas even where this one is there.
      const there = await session.rows('SELECT 1 FROM pg_catalog.pg_namespace WHERE nspname = $1', [
        this.statements.schema
      ])
      if (there.length === 0) await session.run(`CREATE SCHEMA ${schema}`)
      await session.run(this.statements.of(MARKER))
      for (const step of this.#part.steps.slice(version)) {
        for (const statement of step) await session.run(this.statements.qualified(statement))
      }
      await session.run(this.statements.of(SET_VERSION), [this.#part.name, this.latest])
    })
  }

  async #recorded(session: Session): Promise<number> {
    try {
      const rows = await session.rows<[number]>(this.statements.of(VERSION), [this.#part.name])
      return Number(rows[0]?.[0] ?? 0)
    } catch (error) {
      // Removed between the two looks.
      if (isMissing(error)) return 0
      if (sqlStateOf(error) === '42703') throw new EngineFault('foreign', 'the schema is of something else', error)
      throw error
    }
  }
}

/** The key of an advisory lock. Such keys are one space for everybody in a database, so ours are drawn from all of it. */
export function advisoryKey(purpose: 'schema' | 'lease', schema: string): string {
  const digest = createHash('sha256').update(`alkblobs ${purpose} ${schema}`).digest()
  return digest.readBigInt64BE(0).toString()
}
