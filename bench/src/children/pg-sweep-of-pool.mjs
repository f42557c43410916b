/** One sweep of a pool in PostgreSQL whose entries are all live, by an enumerating source or by a table, as a process of its own. */
import { answer, argument, peakGrowth } from '../child.mjs'
import { keysIn } from '../live-keys.mjs'
import { openPgPool } from '../peers/pg-pool.mjs'

const { server, schema, keys, table, entries } = argument()
const store = await openPgPool(server, schema)
await store.protect(table === undefined ? { name: 'bench', live: () => keysIn(keys) } : { table, column: 'key' })
await store.stat(`blake3:${'0'.repeat(64)}`)
let report
const peakMiB = await peakGrowth(async () => {
  report = await store.sweep()
})
await store.close()
if (report.scanned !== entries || report.live !== entries)
  throw new Error(`a sweep went wrong: ${JSON.stringify(report)}`)
answer({ figure: (report.durationMs * 1000) / entries, peakMiB })
