// A process that sweeps by the table of references: again and again until it is told to stop, or once. With `removeShards`
// it also does what a tidy administrator would: after each sweep it removes every folder of bodies that is empty.
import { readdirSync, rmdirSync } from 'node:fs'
import { join } from 'node:path'
import { given, openPool, References, rootOf, say, toldOnce } from './pool.mjs'

const { folder, once, removeShards } = given
const references = new References(folder)
const store = await openPool(folder, { instanceId: 'sweeper' })
store.protect(references.source)

const totals = { sweeps: 0, staged: 0, deleted: 0, cancelled: 0, bytesDeleted: 0, failed: 0, pinsReaped: 0 }

async function sweep() {
  const report = await store.sweep()
  if (report.aborted !== undefined) throw new Error(`aborted: ${report.aborted}`, { cause: report.cause })
  if (report.scanned !== report.live + report.candidatesStaged + report.alreadyStaged)
    throw new Error(`the counts do not add up: ${JSON.stringify(report)}`)
  totals.sweeps++
  totals.staged += report.candidatesStaged
  totals.deleted += report.deleted
  totals.cancelled += report.cancelledByArbitration
  totals.bytesDeleted += report.bytesDeleted
  totals.failed += report.failed.length
  totals.pinsReaped += report.pinsReaped
  return report
}

let removed = 0

function removeEmptyShards() {
  const root = rootOf(folder)
  for (const outer of readdirSync(root).filter(name => /^[0-9a-f]{2}$/.test(name))) {
    for (const inner of readdirSync(join(root, outer))) removeIfEmpty(join(root, outer, inner))
    removeIfEmpty(join(root, outer))
  }
}

/** Only an empty folder can be removed this way. */
function removeIfEmpty(path) {
  try {
    rmdirSync(path)
    removed++
  } catch (error) {
    if (error.code !== 'ENOTEMPTY') throw error
  }
}

if (once) {
  say({ at: 'open' })
  await toldOnce()
  say({ at: 'sweeping' })
  say({ report: await sweep() })
} else {
  let isStopped = false
  const stop = toldOnce().then(() => {
    isStopped = true
  })
  say({ at: 'open' })
  while (!isStopped) {
    await sweep()
    if (removeShards) removeEmptyShards()
  }
  await stop
  const usage = await store.usage()
  say({ ...totals, window: usage.window, removed })
}
await store.close()
