/** Puts a stream into a pool and reads it back, as a process of its own. */
import { mem } from '@alkblobs/engine-mem'
import { answer, argument, peakGrowth } from '../child.mjs'
import { freshStream } from '../content.mjs'
import { openPool, putAndRelease } from '../peers/pool.mjs'

const { folder, catalog, length } = argument()
const store = await openPool(folder, catalog === 'mem' ? mem() : undefined)
await putAndRelease(store, freshStream(1024 * 1024))
const peakMiB = await peakGrowth(async () => {
  const blob = await store.get(await putAndRelease(store, freshStream(length)))
  for await (const chunk of blob) chunk.at(0)
})
await store.close()
answer({ figure: peakMiB })
