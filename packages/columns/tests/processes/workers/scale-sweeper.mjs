// Sweeps a large pool against a source that enumerates its keys from a file, one a line, and says what that cost beyond an
// idle process.
import { createReadStream } from 'node:fs'
import { given, openPool, say } from './pool.mjs'

const { folder, file, live, sweeps, options } = given

/** The first so many lines, as a cursor over a table would give them. */
async function* keys() {
  let count = 0
  let half = ''
  for await (const part of createReadStream(file, 'utf8')) {
    const lines = (half + part).split('\n')
    half = lines.pop()
    for (const line of lines) {
      if (++count > live) return
      yield line
    }
  }
}

const store = await openPool(folder)
store.protect({ name: 'documents', live: keys })
await store.usage()
const idleMiB = process.memoryUsage().rss / 2 ** 20
const reports = []
for (let i = 0; i < sweeps; i++) reports.push(await store.sweep(options))
const overIdleMiB = process.resourceUsage().maxRSS / 1024 - idleMiB
const usage = await store.usage()
await store.close()
say({ reports, usage, idleMiB, overIdleMiB })
