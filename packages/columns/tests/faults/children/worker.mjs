// Takes one step over a pool and stops at one call of it, to be killed there. Says what was acknowledged as soon as it is.
import { openStore } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { createMedium, mem } from '@alkblobs/engine-mem'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'
import { sqlite } from '@alkblobs/engine-sqlite'
import { contractSteps, FaultPlan, faulty, Markers, perform, prepare, steps, World } from '@alkblobs/faults'

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
  ...(url && { protectTable: (store, table) => store.protect({ table: `public.${table}`, column: 'key' }) })
}

const markers = new Markers()
const { step: name, operation, point, engine, live } = JSON.parse(await markers.reach('started'))
const plan = new FaultPlan()
const world = new World(subject, definition => faulty(definition, plan))
// What others have put is referenced too, or this one's sweeps would be right to take it.
for (const key of live) world.live.set(key, Buffer.alloc(0))
world.onKeep = (key, bytes) => markers.say({ key, bytes: bytes.toString('base64') })
const used = { table: 'public.used', column: 'key' }
const all = [
  ...steps,
  ...[kv(), large()].filter(({ name }) => name !== 'mem').flatMap(each => contractSteps(each, used))
]
const step = all.find(each => each.operation === operation && each.name === name)
const prepared = await prepare(world, step)
plan.arm({
  at: at => at.point === point && at.engine === engine && at.operation === operation,
  how: { kind: 'act', act: () => markers.reach('held') }
})
await perform(world, step, prepared)
await markers.reach('passed')
