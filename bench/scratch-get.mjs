import { readFileSync } from 'node:fs'
import { openPgPool } from './src/peers/pg-pool.mjs'
import { putAndRelease } from './src/peers/pool.mjs'
import { perSecond } from './src/rounds.mjs'
import { freshBytes } from './src/content.mjs'
const at = JSON.parse(readFileSync('/tmp/h7b/at.json'))
const store = await openPgPool(at, 's' + Date.now())
const keys = []
const N = 1024
const what = process.argv[2] ?? 'get'
for (let r = 0; r < 3; r++) {
const c0 = process.cpuUsage()
const p = await perSecond({ count: N, width: 32 }, async i => { keys[i] = await putAndRelease(store, freshBytes(16384)) })
const c = process.cpuUsage(c0)
console.log('put/s', p | 0, 'cpu us', ((c.user + c.system) / N) | 0)
if (what === 'get') break }
if (what === 'get') for (let r = 0; r < 4; r++) {
  const c0 = process.cpuUsage()
  const n = 4096
  const s = await perSecond({ count: n, width: 32 }, async i => { const b = await store.get(keys[(i * 7919) % N]); await b.bytes() })
  const c = process.cpuUsage(c0)
  console.log('get/s', s | 0, 'cpu us', ((c.user + c.system) / n) | 0)
}
await store.close()
