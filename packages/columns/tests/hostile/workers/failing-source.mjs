// A put of a file that is not there, as the very first thing on a store whose pool is not made yet. Nobody catches anything here:
// a failure that does not reach the put ends the process.
import { createReadStream } from 'node:fs'
import { join } from 'node:path'
import { given, openPool, say } from '../../processes/workers/pool.mjs'

const store = await openPool(given.folder)
const outcomeOf = put =>
  put.then(
    () => 'stored',
    error => error.code
  )
say(await outcomeOf(store.put(createReadStream(join(given.folder, 'missing')))))
// Once more, now that there is a pool, and for a put that is refused before it looks at its source.
await (await store.put('something')).release()
say(await outcomeOf(store.put(createReadStream(join(given.folder, 'missing')))))
say(await outcomeOf(store.put(createReadStream(join(given.folder, 'missing')), { maxLength: -1 })))
say(
  await outcomeOf(
    store.put(createReadStream(join(given.folder, 'missing')), { signal: AbortSignal.abort({ code: 'mine' }) })
  )
)
await store.close()
say(await outcomeOf(store.put(createReadStream(join(given.folder, 'missing')))))
