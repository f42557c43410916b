// One long stream into large objects and out again, in a process with little memory, and how much of it lay in memory at most.
import { openStore } from '@alkblobs/core'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'
import { given, say } from '../../processes/workers/pool.mjs'

const CHUNK_LENGTH = 64 * 1024
const { url, schema, length } = given

/** Chunk `n` of the stream: one pattern with the number at its head, so that no two chunks are equal. */
const pattern = Buffer.from(Uint8Array.from({ length: CHUNK_LENGTH }, (_, at) => (at * 31 + (at >> 8)) & 255))
function chunkOf(n) {
  const chunk = Buffer.from(pattern)
  chunk.writeBigUInt64LE(BigInt(n))
  return chunk
}

async function* generated() {
  for (let n = 0; n * CHUNK_LENGTH < length; n++) yield chunkOf(n)
}

/** Holds each byte of a stream against the one that was put. */
async function compare(stream) {
  let at = 0
  for await (const part of stream) {
    for (let offset = 0; offset < part.length; ) {
      const start = at % CHUNK_LENGTH
      const end = Math.min(CHUNK_LENGTH, start + part.length - offset)
      const expected = chunkOf((at - start) / CHUNK_LENGTH)
      if (expected.compare(part, offset, offset + end - start, start, end) !== 0)
        throw new Error(`other bytes at ${at}`)
      at += end - start
      offset += end - start
    }
  }
  return at
}

const peakMiB = () => process.resourceUsage().maxRSS / 1024
const store = await openStore({ kv: postgres({ url, schema }), large: pglo({ url }) })
await (await store.put('the pool is there')).release()
const idleMiB = peakMiB()
const putStart = performance.now()
const receipt = await store.put(generated())
const putMs = performance.now() - putStart
const putPeakMiB = peakMiB()
const getStart = performance.now()
const read = await compare((await store.get(receipt.key)).stream())
const getMs = performance.now() - getStart
await receipt.release()
await store.close()
say({ length: receipt.length, read, idleMiB, putPeakMiB, peakMiB: peakMiB(), putMs, getMs })
