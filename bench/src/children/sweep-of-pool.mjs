/** One sweep of a pool whose entries are all live, as a process of its own. */
import { answer, argument, peakGrowth } from '../child.mjs'
import { keysIn } from '../live-keys.mjs'
import { openPool } from '../peers/pool.mjs'

const { folder, keys, entries } = argument()
const store = await openPool(folder)
store.protect({ name: 'bench', live: () => keysIn(keys) })
await store.stat(`blake3:${'0'.repeat(64)}`)
let report
const peakMiB = await peakGrowth(async () => {
  report = await store.sweep()
})
await store.close()
if (report.scanned !== entries || report.live !== entries)
  throw new Error(`a sweep went wrong: ${JSON.stringify(report)}`)
answer({ figure: (report.durationMs * 1000) / entries, peakMiB })
