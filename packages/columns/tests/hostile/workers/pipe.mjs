// Meets a pipe in the place of a file of the pool. Opened the wrong way it stops the event loop or a thread for ever, and this
// process does not end.
import { given, openPool, say } from '../../processes/workers/pool.mjs'

const outcomeOf = work =>
  work.then(
    value => value ?? 'done',
    error => error.code
  )
const options = { threshold: 10, operationTimeoutMs: 2_000 }
let store
const opening = openPool(given.folder, options).then(opened => {
  store = opened
})
say({ open: await outcomeOf(opening) })
if (store !== undefined) {
  const { key } = given
  say({ get: await outcomeOf(store.get(key).then(async blob => (await blob.bytes()).length)) })
  say({ range: await outcomeOf(store.get(key).then(async blob => (await blob.slice(0, 5).bytes()).length)) })
  const report = await store.verify().catch(error => ({ failed: error.code }))
  say({ verify: report.failed ?? report.corrupt?.map(each => each.key) })
  say({ put: await outcomeOf(store.put(Buffer.alloc(given.length, 7)).then(receipt => receipt.release())) })
  say({ again: await outcomeOf(store.get(key).then(async blob => (await blob.bytes()).length)) })
  say({ close: await outcomeOf(store.close()) })
}
