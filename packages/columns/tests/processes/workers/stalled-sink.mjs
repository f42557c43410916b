// A medium that stops taking bytes in the middle of a put: the producer must stop being asked for more.

import { setImmediate as turn } from 'node:timers/promises'
import { openStore } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { sqlite } from '@alkblobs/engine-sqlite'
import { fileOf, given, rootOf, say } from './pool.mjs'

const CHUNK_LENGTH = 64 * 1024
const TURNS = 500
const { folder, length, stallAfter } = given

let written = 0
let goOn
let stalled
const isStalled = new Promise(resolve => {
  stalled = resolve
})
const gate = new Promise(resolve => {
  goOn = resolve
})

/** The local engine, whose writes wait at the gate once so many bytes have gone through. */
function gated(definition) {
  return {
    name: definition.name,
    async open(context) {
      const engine = await definition.open(context)
      const create = async (...args) => {
        const writer = await engine.bodies.create(...args)
        return {
          async write(chunk) {
            if (written >= stallAfter) {
              stalled()
              await gate
            }
            await writer.write(chunk)
            written += chunk.length
          },
          seal: key => writer.seal(key),
          discard: () => writer.discard()
        }
      }
      return { ...engine, bodies: { ...engine.bodies, create } }
    }
  }
}

let pulled = 0
async function* generated() {
  for (; pulled < length; pulled += CHUNK_LENGTH) yield Buffer.alloc(CHUNK_LENGTH, pulled / CHUNK_LENGTH)
}

const store = await openStore({ kv: sqlite({ file: fileOf(folder) }), large: gated(local({ root: rootOf(folder) })) })
const putting = store.put(generated())
await isStalled
// Whatever is still on its way arrives within these turns; a put that does not wait would pull everything in them.
for (let i = 0; i < TURNS; i++) await turn()
const ahead = pulled - written
goOn()
const receipt = await putting
await receipt.release()
await store.close()
say({ aheadMiB: ahead / 2 ** 20, length: receipt.length, pulled, written })
