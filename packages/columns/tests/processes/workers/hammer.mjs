// One process of several threads, each with a store of its own over the same pool. All begin together, when told to.
import { Worker } from 'node:worker_threads'
import { given, say, toldOnce } from './pool.mjs'

const { threads, ...rest } = given
const workers = Array.from(
  { length: threads },
  (_, thread) => new Worker(new URL('./hammer-thread.mjs', import.meta.url), { workerData: { ...rest, thread } })
)

const next = worker =>
  new Promise((resolve, reject) => {
    worker.once('message', resolve)
    worker.once('error', reject)
  })

await Promise.all(workers.map(next))
say({ at: 'ready' })
await toldOnce()
const results = workers.map(next)
for (const worker of workers) worker.postMessage('go')
say({ results: await Promise.all(results) })
