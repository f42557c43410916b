/** alkblobs on PostgreSQL as a user opens it: one schema, and large blobs as large objects of the same database. */
import { openStore } from '@alkblobs/core'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'

/** `name` is that of a schema; `options` are the store's. */
export function openPgPool(at, name, options = {}) {
  const large = pglo({ ...at, schema: `${name}_lo` })
  return openStore({ kv: postgres({ ...at, schema: name }), large, ...options })
}
