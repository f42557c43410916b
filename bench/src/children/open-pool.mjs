/** Everything a process does up to its first durable put. Answers the milliseconds since the process began. */
import { answer, argument } from '../child.mjs'
import { openPool } from '../peers/pool.mjs'

const { folder } = argument()
const store = await openPool(folder)
const receipt = await store.put('the first')
const sinceStart = performance.now()
await receipt.release()
await store.close()
answer({ figure: sinceStart })
