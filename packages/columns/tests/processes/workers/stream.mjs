// One long stream in and out again, in a process with little memory: how much of it lies in memory, and how far the producer
// ever was ahead of the file.
import { readdirSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { given, openPool, rootOf, say } from './pool.mjs'

const CHUNK_LENGTH = 64 * 1024
const { folder, length } = given

/** Chunk `n` of the stream: one pattern with the number at its head, so that no two chunks are equal. */
const pattern = Buffer.from(Uint8Array.from({ length: CHUNK_LENGTH }, (_, at) => (at * 31 + (at >> 8)) & 255))
function chunkOf(n) {
  const chunk = Buffer.from(pattern)
  chunk.writeBigUInt64LE(BigInt(n))
  return chunk
}

const stages = join(rootOf(folder), 'stage')
function lengthWritten() {
  const [stage] = readdirSync(stages)
  return stage === undefined ? 0 : statSync(join(stages, stage)).size
}

let aheadMax = 0
async function* generated() {
  for (let n = 0; n * CHUNK_LENGTH < length; n++) {
    // Asked for this chunk, so all before it are in somebody's hands; what is not in the file is in memory.
    if (n > 0) aheadMax = Math.max(aheadMax, n * CHUNK_LENGTH - lengthWritten())
    yield chunkOf(n)
  }
}

/** Reads the blob back and holds each byte against the stream. */
async function compare(blob) {
  let at = 0
  for await (const part of blob) {
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
const store = await openPool(folder)
const idleMiB = peakMiB()
const putStart = performance.now()
const receipt = await store.put(generated())
const putMs = performance.now() - putStart
const putPeakMiB = peakMiB()
const getStart = performance.now()
const read = await compare(await store.get(receipt.key))
const getMs = performance.now() - getStart
await receipt.release()
await store.close()
say({
  length: receipt.length,
  read,
  idleMiB,
  putPeakMiB,
  peakMiB: peakMiB(),
  aheadMiB: aheadMax / 2 ** 20,
  putMs,
  getMs
})
