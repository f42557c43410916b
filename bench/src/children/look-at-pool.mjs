/** One look over a whole pool, as a process of its own. Answers milliseconds. */
import { answer, argument } from '../child.mjs'
import { keysIn } from '../live-keys.mjs'
import { openPool } from '../peers/pool.mjs'
import { milliseconds } from '../rounds.mjs'

const { folder, keys, entries, look } = argument()

const LOOKS = {
  open: async store => ({ entries: (await store.stat(`blake3:${'0'.repeat(64)}`)) === undefined ? entries : 0 }),
  async list(store) {
    let count = 0
    for await (const _ of store.list()) count++
    return { entries: count }
  },
  usage: store => store.usage(),
  verify: store => store.verify(),
  async sweep(store) {
    store.protect({ name: 'bench', live: () => keysIn(keys) })
    return { entries: (await store.sweep()).live }
  }
}

let opened
const opening = await milliseconds(async () => {
  opened = await openPool(folder)
  if (look === 'open') await LOOKS.open(opened)
})
let found = { entries }
const looking = await milliseconds(async () => {
  if (look !== 'open') found = await LOOKS[look](opened)
})
await opened.close()
if (found.entries !== entries) throw new Error(`${look} found ${found.entries} of ${entries} entries`)
answer({ figure: look === 'open' ? opening : looking })
