// An application that keeps few contents again and again: put or put once more, read under the pin, write a reference,
// release. Whatever is pinned or referenced must be there, whole, at every look, while another process sweeps.
import { contentOf, given, openPool, References, randomFrom, say, streamOf, THRESHOLD } from './pool.mjs'

const LENGTHS = [0, 1, 900, THRESHOLD, THRESHOLD + 1, 20_000, 70_000, 1_200_000]
const CONTENTS = 16
const REFERENCED_MAX = 6

const { folder, rounds, seed } = given
const random = randomFrom(seed)
const references = new References(folder)
const store = await openPool(folder, { instanceId: 'writer' })
const counts = { puts: 0, created: 0, createdBytes: 0, pins: 0, references: 0, reads: 0 }
/** Keys under reference, and their contents. */
const referenced = new Map()

async function read(key, bytes, why) {
  const blob = await store.get(key)
  if (blob === undefined) throw new Error(`lost: ${key} is absent though it is ${why}`)
  if (Buffer.compare(await blob.bytes(), bytes) !== 0) throw new Error(`lost: ${key} reads as other bytes`)
  counts.reads++
}

async function put(bytes) {
  const receipt = await store.put(random.chance(0.5) ? streamOf(bytes) : bytes)
  counts.puts++
  if (receipt.created) {
    counts.created++
    counts.createdBytes += bytes.length
  }
  return receipt
}

async function round(n) {
  const bytes = contentOf(`content ${n}`, LENGTHS[n % LENGTHS.length])
  const receipt = await put(bytes)
  const { key } = receipt
  await read(key, bytes, 'pinned by a put')
  let holder = receipt
  if (random.chance(0.4)) {
    // The put's pin hands over to one of its own, as when a second request takes the key.
    holder = await store.pin(key)
    if (holder === undefined) throw new Error(`lost: ${key} cannot be pinned though a put holds it`)
    counts.pins++
    await receipt.release()
    await read(key, bytes, 'pinned')
  }
  if (random.chance(0.5)) {
    references.add(key)
    referenced.set(key, bytes)
    counts.references++
  }
  await holder.release()
}

/** Ends the oldest reference, after a last look at what it kept. */
async function dereference() {
  const [[key, bytes]] = referenced
  await read(key, bytes, 'referenced')
  references.remove(key)
  referenced.delete(key)
}

for (let i = 0; i < rounds; i++) {
  await round(random.below(CONTENTS))
  while (referenced.size > REFERENCED_MAX) await dereference()
  if (i % 20 === 0) for (const [key, bytes] of referenced) await read(key, bytes, 'referenced')
  if (i === 0) say({ at: 'first' })
}
for (const [key, bytes] of referenced) await read(key, bytes, 'referenced')
await store.close()
say({ ...counts, referenced: [...referenced.keys()] })
