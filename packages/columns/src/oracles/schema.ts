/** Looks at a catalog in a schema of PostgreSQL, over the connection of the tests. */
import type { ApplicationTable, JoinableTransaction, OpenTransaction, StoredPin } from '@alkblobs/conformance'
import { digestOf } from '@alkblobs/core/engine'
import type { TestSchema } from '@alkblobs/testkit'
import postgres from 'postgres'
import { applicationTable } from './application-table.js'
import { damagedBytes } from './damage.js'
import type { OraclePart } from './part.js'
import { busySessions } from './sessions.js'

const COUNTS = `SELECT
  (SELECT count(*)::int FROM $.entries WHERE body IS NOT NULL) AS "inlineEntries",
  (SELECT count(*)::int FROM $.stages) AS stages,
  (SELECT count(*)::int FROM $.trash) AS trash,
  (SELECT count(*)::int FROM $.gc_window WHERE mark = '') AS window,
  (SELECT count(*)::int FROM $.gc_pins) AS pins`

const AGE = [
  ['gc_window', 'staged_at'],
  ['gc_pins', 'expires_at'],
  ['stages', 'expires_at'],
  ['trash', 'not_before']
] as const

/** An exception undoes the whole transaction, as a full disk does; the code is that of one. */
const refusal = (length: number) => `
  CREATE FUNCTION $.refuse() RETURNS trigger LANGUAGE plpgsql AS
    $body$ BEGIN RAISE EXCEPTION 'the medium refuses this entry' USING ERRCODE = 'disk_full'; END $body$;
  CREATE TRIGGER refuse BEFORE INSERT ON $.entries FOR EACH ROW WHEN (NEW.length = ${Number(length)})
    EXECUTE FUNCTION $.refuse()`

const PIN_ROWS = `SELECT owner, generation::float8 AS generation, extract(epoch FROM expires_at)::float8 * 1000 AS "expiresAtMs",
    expires_at <= clock_timestamp() AS "isExpired"
  FROM $.gc_pins WHERE key = $1 ORDER BY owner`

const PIN_REFUSAL = `
  CREATE FUNCTION $.refuse_pins() RETURNS trigger LANGUAGE plpgsql AS
    $body$ BEGIN RAISE EXCEPTION 'the medium refuses this pin' USING ERRCODE = 'disk_full'; END $body$;
  CREATE TRIGGER refuse_pins BEFORE INSERT ON $.gc_pins FOR EACH ROW EXECUTE FUNCTION $.refuse_pins()`

const PIN = `INSERT INTO $.gc_pins (key, owner, generation, expires_at)
  VALUES ($1, 'somebody else', 1, clock_timestamp() + interval '1 hour')`

/** The part of an oracle that looks at a schema; `another` makes a schema for an application in the same database. */
export function schemaPart(place: TestSchema, another: () => Promise<TestSchema>): OraclePart {
  const { schema, query } = place
  const of = (text: string) => text.replaceAll('$.', `${schema}.`)
  /** Whether the schema is a pool by now: before the first write there is none. */
  const isPool = async () => {
    const [row] = await query('SELECT to_regclass($1) IS NOT NULL AS found', [`${schema}.entries`])
    return row?.found === true
  }
  return {
    async counts() {
      if (!(await isPool())) return {}
      const [counts] = await query<Record<string, number>>(of(COUNTS))
      return counts ?? {}
    },
    async exists() {
      const [row] = await query('SELECT count(*)::int AS count FROM pg_namespace WHERE nspname = $1', [schema])
      return row?.count !== 0
    },
    async age(byMs) {
      if (!(await isPool())) return
      for (const [table, column] of AGE) {
        await query(of(`UPDATE $.${table} SET ${column} = ${column} - $1 * interval '1 millisecond'`), [byMs])
      }
    },
    async expirePins(key, owner) {
      if (!(await isPool())) return
      const which = '($1::bytea IS NULL OR key = $1) AND ($2::text IS NULL OR owner = $2)'
      const given = [key === undefined ? null : Buffer.from(digestOf(key)), owner ?? null]
      await query(of(`UPDATE $.gc_pins SET expires_at = 'epoch' WHERE ${which}`), given)
    },
    pinRows: async key => await query<StoredPin & Record<string, unknown>>(of(PIN_ROWS), [Buffer.from(digestOf(key))]),
    async refusePins(isRefusing) {
      await query(of('DROP TRIGGER IF EXISTS refuse_pins ON $.gc_pins; DROP FUNCTION IF EXISTS $.refuse_pins()'))
      if (isRefusing) await query(of(PIN_REFUSAL))
    },
    async corrupt(key, how) {
      if (!(await isPool())) return false
      const digest = Buffer.from(digestOf(key))
      const [row] = await query(of('SELECT body FROM $.entries WHERE key = $1 AND body IS NOT NULL'), [digest])
      if (row === undefined) return false
      const body = Buffer.from(damagedBytes(row.body as Uint8Array, how))
      await query(of('UPDATE $.entries SET body = $1 WHERE key = $2'), [body, digest])
      return true
    },
    async refuse(length) {
      if (!(await isPool())) return
      await query(of('DROP TRIGGER IF EXISTS refuse ON $.entries; DROP FUNCTION IF EXISTS $.refuse()'))
      if (length !== undefined) await query(of(refusal(length)))
    },
    handles: () => busySessions(place, schema),
    application: async (form): Promise<ApplicationTable> => await applicationTable(await another(), form),
    pinInTransaction: key => pinning(place, of(PIN), Buffer.from(digestOf(key))),
    transaction: () => openTransaction(place)
  }
}

/** A transaction that has run one statement. */
async function pinning(place: TestSchema, statement: string, value: Buffer): Promise<OpenTransaction> {
  const { own, commit, rollback, release } = await openTransaction(place)
  const end = (how: () => Promise<void>) => () => how().finally(release)
  await own.unsafe(statement, [value]).catch(error => release().then(() => Promise.reject(error)))
  return { commit: end(commit), rollback: end(rollback) }
}

/** A transaction on the one connection that can end it. */
async function openTransaction(place: TestSchema): Promise<JoinableTransaction & { own: postgres.ReservedSql }> {
  const { host, port, user, password, database } = place
  const client = postgres({ host, port, user, password, database, max: 1 })
  const own = await client.reserve()
  const run = (statement: string) => async () => {
    await own.unsafe(statement).simple()
  }
  await run('BEGIN')()
  // The server rolls back what is still open when the connection goes.
  const release = async () => {
    own.release()
    await client.end({ timeout: 1 })
  }
  return { own, handle: own, commit: run('COMMIT'), rollback: run('ROLLBACK'), release }
}
