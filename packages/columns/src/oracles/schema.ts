/** Looks at a catalog in a schema of PostgreSQL, over the connection of the tests. */
import type { ApplicationTable, OpenTransaction } from '@alkblobs/conformance'
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
    async expirePins(key) {
      if (!(await isPool())) return
      const which = key === undefined ? '' : 'WHERE key = $1'
      await query(
        of(`UPDATE $.gc_pins SET expires_at = 'epoch' ${which}`),
        key === undefined ? [] : [Buffer.from(digestOf(key))]
      )
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
    pinInTransaction: key => openTransaction(place, of(PIN), Buffer.from(digestOf(key)))
  }
}

/** A transaction that has run one statement, on the one connection that can end it. */
async function openTransaction(place: TestSchema, statement: string, value: Buffer): Promise<OpenTransaction> {
  const { host, port, user, password, database } = place
  const own = postgres({ host, port, user, password, database, max: 1 })
  await own.unsafe('BEGIN').simple()
  await own.unsafe(statement, [value])
  const end = (how: 'COMMIT' | 'ROLLBACK') => async () => {
    await own.unsafe(how).simple()
    await own.end({ timeout: 1 })
  }
  return { commit: end('COMMIT'), rollback: end('ROLLBACK') }
}
