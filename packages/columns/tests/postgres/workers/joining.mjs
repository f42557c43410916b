// A process that puts two blobs and the rows that refer to them in one transaction. Right before statement number `stopAt` of the
// application's session it kills itself, or says so and waits until its session has been ended by somebody else.
import { existsSync, writeSync } from 'node:fs'
import { openStore } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'
import driver from 'postgres'

const { place, stopAt, way, released, seed } = JSON.parse(process.argv[2])
const say = message => writeSync(1, `${JSON.stringify(message)}\n`)
const pause = new Int32Array(new SharedArrayBuffer(4))
let statements = 0

function reach() {
  statements += 1
  if (statements !== stopAt) return
  if (way === 'SIGKILL') process.kill(process.pid, 'SIGKILL')
  say({ stopped: true })
  while (!existsSync(released)) Atomics.wait(pause, 0, 0, 10)
}

const { kind, url, root } = place
const large = {
  'postgres + local': () => local({ root }),
  'kv-only': () => undefined,
  'postgres + pglo': () => pglo({ url })
}[kind]()
const threshold = large === undefined ? { threshold: 100_000 } : { threshold: 3_000, large }
const store = await openStore({
  kv: postgres({ url }),
  windowDelayMs: 0,
  trashDelayMs: 0,
  stageTtlMs: 300,
  ...threshold
})
const sql = driver(url, { max: 1, fetch_types: false, debug: reach, connection: { application_name: 'victim' } })
await sql.begin(async tx => {
  const joined = await store.joining(tx)
  for (const content of [Buffer.alloc(1_000, seed), Buffer.alloc(10_000, seed)]) {
    const { key } = await joined.put(content)
    await tx`INSERT INTO files VALUES (${key})`
  }
})
say({ statements })
await sql.end()
await store.close()
