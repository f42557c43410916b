// Takes one step over a pool and stops at one call of it, of the contract or of a medium, to be killed there. Says what was acknowledged as soon
// as it is.

import { openStore } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { createMedium, mem } from '@alkblobs/engine-mem'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'
import { sqlite } from '@alkblobs/engine-sqlite'
import { contractSteps, FaultPlan, faulty, Markers, perform, prepare, steps, together, World } from '@alkblobs/faults'
import { onMedium } from './medium.mjs'

const given = JSON.parse(process.argv[2])
const { kind, folder, url } = given.place
const medium = createMedium()

const kv = () => {
  if (kind.startsWith('mem')) return mem({ medium })
  return kind.startsWith('sqlite') ? sqlite({ file: `${folder}/kv.db` }) : postgres({ url, schema: given.schema })
}
const large = () => (kind.endsWith('pglo') ? pglo({ url }) : local({ root: `${folder}/large` }))

const subject = {
  threshold: given.threshold,
  hasBodies: true,
  open: wrap =>
    openStore({
      kv: wrap(kv()),
      large: wrap(large()),
      threshold: given.threshold,
      derivation: 'sha256',
      windowDelayMs: 0,
      trashDelayMs: 0
    }),
  expire: async () => {},
  residue: async () => ({}),
  ...(kind.startsWith('postgres') && { together: work => together(url, work) }),
  ...(url && { protectTable: (store, table) => store.protect({ table: `public.${table}`, column: 'key' }) })
}

const markers = new Markers()
const { step: name, operation, point, engine, inside, largeLength, live } = JSON.parse(await markers.reach('started'))
const plan = new FaultPlan()
const world = new World(subject, definition => faulty(definition, plan))
if (largeLength !== undefined) Object.defineProperty(world, 'large', { get: () => world.fresh(largeLength) })
// What others have put is referenced too, or this one's sweeps would be right to take it.
for (const key of live) world.live.set(key, Buffer.alloc(0))
world.onKeep = (key, bytes) => markers.say({ key, bytes: bytes.toString('base64') })
const used = { table: 'public.used', column: 'key' }
const all = [
  ...steps,
  ...[kv(), large()].filter(({ name }) => name !== 'mem').flatMap(each => contractSteps(each, { table: used, url }))
]
const step = all.find(each => each.operation === operation && each.name === name)
const prepared = await prepare(world, step)
if (inside === undefined) {
  plan.arm({
    at: at => at.point === point && at.engine === engine && at.operation === operation,
    how: { kind: 'act', act: () => markers.reach('held') }
  })
} else onMedium(hold)

const calls = []
/** Tells every call, or waits at the one that is meant, with everything that this thread does, until it is killed. */
function hold(call) {
  calls.push(call)
  if (call !== inside.call || calls.filter(each => each === call).length !== inside.nth) return
  markers.say({ at: 'held', call })
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0)
}
await perform(world, step, prepared)
onMedium(undefined)
await markers.reach('passed', { calls })
