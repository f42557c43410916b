/** Puts a stream into large objects and reads it back, as a process of its own. */
import { openStore } from '@alkblobs/core'
import { mem } from '@alkblobs/engine-mem'
import { pglo } from '@alkblobs/engine-pglo'
import { answer, argument, peakGrowth } from '../child.mjs'
import { freshStream } from '../content.mjs'
import { openPgPool } from '../peers/pg-pool.mjs'
import { putAndRelease } from '../peers/pool.mjs'

const { server, kv, length } = argument()
const store =
  kv === 'mem'
    ? await openStore({ kv: mem(), large: pglo({ ...server, schema: 'bench_memory_mem' }) })
    : await openPgPool(server, 'bench_memory')
await putAndRelease(store, freshStream(1024 * 1024))
const peakMiB = await peakGrowth(async () => {
  const blob = await store.get(await putAndRelease(store, freshStream(length)))
  for await (const chunk of blob) chunk.at(0)
})
await store.close()
answer({ figure: peakMiB })
