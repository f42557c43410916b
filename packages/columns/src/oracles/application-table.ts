/** A table of an application, in a schema of its own beside the pool, and a look at all that could have been done to it. */
import type { ApplicationTable } from '@alkblobs/conformance'
import { type BlobKey, digestOf } from '@alkblobs/core/engine'
import type { TestSchema } from '@alkblobs/testkit'

/** What makes a table what it is: columns, indexes, constraints, triggers, rights, storage, and its rows with who wrote them. */
const LOOK = `
  SELECT c.oid::text, c.relfilenode::text, c.relacl::text, c.reloptions::text, c.relhastriggers, c.relrowsecurity,
    (SELECT string_agg(a.attname || ' ' || format_type(a.atttypid, a.atttypmod), ', ' ORDER BY a.attnum)
       FROM pg_attribute a WHERE a.attrelid = c.oid AND a.attnum > 0) AS columns,
    (SELECT string_agg(pg_get_indexdef(i.indexrelid), '; ' ORDER BY i.indexrelid) FROM pg_index i WHERE i.indrelid = c.oid) AS indexes,
    (SELECT string_agg(pg_get_constraintdef(k.oid), '; ' ORDER BY k.oid)
       FROM pg_constraint k WHERE c.oid IN (k.conrelid, k.confrelid)) AS constraints,
    (SELECT string_agg(t.xmin::text || ' ' || t.id, ', ' ORDER BY t.id) FROM $ t) AS rows
  FROM pg_class c WHERE c.oid = $1::regclass`

export async function applicationTable(place: TestSchema, form: 'text' | 'bytes'): Promise<ApplicationTable> {
  const { schema, query } = place
  const table = `${schema}."Blob references"`
  const written = (key: BlobKey) => (form === 'text' ? key : Buffer.from(digestOf(key)))
  const type = form === 'text' ? 'text' : 'bytea'
  await query(`CREATE SCHEMA ${schema}; CREATE TABLE ${table} (id serial PRIMARY KEY, "the key" ${type}, note text);
    CREATE INDEX ON ${table} ("the key"); INSERT INTO ${table} (note) VALUES ('references nothing')`)
  return {
    source: { table, column: 'the key' },
    async reference(keys) {
      for (const key of keys) await query(`INSERT INTO ${table} ("the key") VALUES ($1)`, [written(key)])
    },
    async forget(keys) {
      for (const key of keys) await query(`DELETE FROM ${table} WHERE "the key" = $1`, [written(key)])
    },
    async look() {
      const [row] = await query(LOOK.replace('FROM $ t', `FROM ${table} t`), [table])
      return row
    },
    async drop() {
      await query(`DROP TABLE ${table}`)
    }
  }
}
