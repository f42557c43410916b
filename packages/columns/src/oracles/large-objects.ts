/** Looks at the large objects of a database, which one pool has to itself, and at the rows that name them. */
import type { Damage } from '@alkblobs/conformance'
import { digestOf } from '@alkblobs/core/engine'
import type { TestDatabase } from '@alkblobs/testkit'
import type { OraclePart } from './part.js'
import { busySessions } from './sessions.js'

/** Where the engine keeps its tables unless it is told otherwise. */
export const PGLO_SCHEMA = 'alkblobs_pglo'

/** A row without an object is no body; an object without a row is one half of a write, whoever left it. */
const COUNTS = `SELECT
  (SELECT count(*)::int FROM ${PGLO_SCHEMA}.lo_entries e JOIN pg_largeobject_metadata m ON m.oid = e.loid) AS bodies,
  (SELECT count(*)::int FROM pg_largeobject_metadata m
     WHERE NOT EXISTS (SELECT FROM ${PGLO_SCHEMA}.lo_entries e WHERE e.loid = m.oid)) AS stages`

/** INV_WRITE */
const FOR_WRITING = 131_072

/** What damage does to the object `$1`; its row goes on saying what it said. */
const DAMAGES: Readonly<Record<Damage, string>> = {
  flip: `SELECT lo_put($1, at, set_byte(lo_get($1, at, 1), 0, get_byte(lo_get($1, at, 1), 0) # 1))
    FROM (SELECT lo_lseek64(lo_open($1, ${FOR_WRITING}), 0, 2) / 2 AS at) AS middle`,
  truncate: `SELECT lo_truncate64(f, lo_lseek64(f, 0, 2) - 1) FROM (SELECT lo_open($1, ${FOR_WRITING}) AS f) AS opened`,
  empty: `SELECT lo_truncate64(lo_open($1, ${FOR_WRITING}), 0)`,
  remove: 'SELECT lo_unlink($1)',
  directory: `SELECT lo_truncate64(lo_open($1, ${FOR_WRITING}), 0), lo_put($1, 0, 'something else')`
}

/** The part of an oracle that looks at large objects. */
export function largeObjectsPart(place: TestDatabase): OraclePart {
  const { query, database } = place
  const isThere = async () => {
    const [row] = await query('SELECT to_regclass($1) IS NOT NULL AS found', [`${PGLO_SCHEMA}.lo_entries`])
    return row?.found === true
  }
  return {
    async counts() {
      if (await isThere()) return (await query<Record<string, number>>(COUNTS))[0] ?? {}
      const [row] = await query('SELECT count(*)::int AS stages FROM pg_largeobject_metadata')
      return { stages: Number(row?.stages) }
    },
    async exists() {
      const [row] = await query(
        `SELECT (SELECT count(*) FROM pg_namespace WHERE nspname = $1)
              + (SELECT count(*) FROM pg_largeobject_metadata) AS count`,
        [PGLO_SCHEMA]
      )
      return Number(row?.count) > 0
    },
    async corrupt(key, how) {
      if (!(await isThere())) return false
      const digest = Buffer.from(digestOf(key))
      const [row] = await query(`SELECT loid::text FROM ${PGLO_SCHEMA}.lo_entries WHERE key = $1 AND NOT dropping`, [
        digest
      ])
      if (row === undefined) return false
      const text = DAMAGES[how].replaceAll('$1', `${String(row.loid)}::oid`)
      await query(text)
      return true
    },
    handles: () => busySessions(place, `${database} large`),
    async largeTables() {
      const rows = await query('SELECT tablename::text FROM pg_tables WHERE schemaname = $1 ORDER BY 1', [PGLO_SCHEMA])
      return rows.map(({ tablename }) => String(tablename))
    }
  }
}
