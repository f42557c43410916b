// A writer that is killed at its work: puts of mixed sizes in four lanes, each acknowledged once its reference is in a log
// on disk; some are deleted again instead. Says nothing that is not true at that moment.
import { fsyncSync, ftruncateSync, openSync, readFileSync, writeSync } from 'node:fs'
import { contentOf, given, openPool, randomFrom, say, streamOf, THRESHOLD, toldOnce } from './pool.mjs'

const LANES = 4
const { folder, log, seed } = given
const random = randomFrom(seed)

function lengthBelow(kind) {
  if (kind < 50) return random.below(THRESHOLD + 1)
  if (kind < 95) return THRESHOLD + 1 + random.below(150_000)
  return 1_000_000 + random.below(1_500_000)
}

/** A fourth of all contents are some that other runs put too. */
function newContent(number) {
  if (random.chance(0.25)) {
    const n = random.below(8)
    return { name: `shared ${n}`, length: 500 + n * 3_000, isShared: true }
  }
  return { name: `${seed} ${number}`, length: lengthBelow(random.below(100)), isShared: false }
}

/** Without the half line that a writer leaves which is killed in the midst of one: it was acknowledged to nobody. */
function openLog() {
  const file = openSync(log, 'a+', 0o600)
  ftruncateSync(file, readFileSync(log).lastIndexOf('\n') + 1)
  return file
}

say({ at: 'started' })
await toldOnce()
const store = await openPool(folder)
const references = openLog()
say({ at: 'open' })

let number = 0

async function lane() {
  for (;;) {
    const { name, length, isShared } = newContent(++number)
    const bytes = contentOf(name, length)
    const receipt = await store.put(random.chance(0.5) ? streamOf(bytes) : bytes)
    const { key } = receipt
    if (!isShared && random.chance(0.2)) {
      await receipt.release()
      await store.delete(key)
      continue
    }
    writeSync(references, `${JSON.stringify({ key, name, length })}\n`)
    fsyncSync(references)
    say({ key, name, length })
    await receipt.release()
  }
}

await Promise.all(Array.from({ length: LANES }, lane))
