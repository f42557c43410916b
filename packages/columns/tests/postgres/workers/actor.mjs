// A process that does one thing to a pool and says how far it has come, so that it can be stopped or killed there.
import { openStore } from '@alkblobs/core'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'
import { contentOf, given, heard, say, toldOnce } from '../../processes/workers/pool.mjs'

const { url, schema, threshold, act, pinTtlMs, key, keepsSource } = given
const store = await openStore({
  kv: postgres({ url, schema }),
  large: pglo({ url }),
  threshold,
  windowDelayMs: 0,
  trashDelayMs: 0,
  pinTtlMs,
  instanceId: 'actor'
})

const acts = {
  /** Sweeps once it is told to; with `keepsSource` its source never answers. */
  async sweep() {
    say({ at: 'open' })
    await toldOnce()
    store.protect({
      name: 'nothing',
      async live() {
        say({ at: 'sources' })
        if (keepsSource) await new Promise(resolve => setTimeout(resolve, 3_600_000))
        return []
      }
    })
    say({ report: await store.sweep() })
  },
  /** Writes a part of a body and waits for more that never comes. */
  async upload() {
    const writer = store.writer()
    await writer.write(contentOf('upload', 3_000_000))
    say({ at: 'written' })
    await new Promise(resolve => setTimeout(resolve, 3_600_000))
  },
  /** Holds a pin and answers how it is doing. */
  async pin() {
    const pin = await store.pin(key)
    say({ held: pin.held, pid: process.pid })
    for await (const { ask } of heard()) {
      if (ask === 'end') break
      if (!pin.signal.aborted) await new Promise(resolve => pin.signal.addEventListener('abort', resolve))
      say({ held: pin.held, has: await store.has(key) })
    }
  }
}

await acts[act]()
await store.close()
