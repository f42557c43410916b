// Puts many large contents into sixteen shards: the shard comes from a stage id, a stage id from 16 random bytes, and here
// each of the first two bytes of every 16 is one of four. Few contents are referenced, so the shards keep running empty.
import crypto from 'node:crypto'
import { syncBuiltinESMExports } from 'node:module'

const { randomBytes } = crypto
crypto.randomBytes = length => {
  const bytes = randomBytes(length)
  if (length === 16) bytes.set([bytes[0] & 3, bytes[1] & 3])
  return bytes
}
syncBuiltinESMExports()

const { contentOf, given, inLanes, openPool, References, say, THRESHOLD, toldOnce } = await import('./pool.mjs')
const { folder, puts, lanes } = given
const references = new References(folder)
const store = await openPool(folder, { instanceId: 'writer' })
const first = await store.put('first')
await first.release()
say({ at: 'open' })
await toldOnce()

const counts = { puts: 0, created: 1, referenced: [] }
await inLanes(Array.from({ length: puts }), lanes, async (_, n) => {
  const bytes = contentOf(`body ${n}`, THRESHOLD + 1 + n)
  const receipt = await store.put(bytes)
  counts.puts++
  if (receipt.created) counts.created++
  const blob = await store.get(receipt.key)
  if (Buffer.compare(await blob.bytes(), bytes) !== 0) throw new Error(`body ${n} reads as other bytes`)
  if (n % 50 === 0) {
    references.add(receipt.key)
    counts.referenced.push({ key: receipt.key, name: `body ${n}`, length: bytes.length })
  }
  await receipt.release()
})
await store.close()
say(counts)
