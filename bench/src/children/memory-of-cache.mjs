/** Puts a stream into cacache and reads it back, as a process of its own. */
import { answer, argument, peakGrowth } from '../child.mjs'
import { freshStream } from '../content.mjs'
import { openCache } from '../peers/cache-of-npm.mjs'

const { folder, length } = argument()
const cache = openCache(folder)
await cache.putStream(freshStream(1024 * 1024))
const peakMiB = await peakGrowth(async () => {
  await cache.drain(await cache.putStream(freshStream(length)))
})
answer({ figure: peakMiB })
