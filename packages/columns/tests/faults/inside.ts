/**
 * Processes that are killed inside of a call of the contract: before a call that the engine makes of its medium. A body that is written and not yet
 * under its name, under its name and its folder not yet synced, a transaction of SQLite that is half done, each message to a server.
 */
import type { BlobKey } from '@alkblobs/core'
import { assertWhole, FaultPlan, faulty, ledger, pgAdmin, type Step, sessionsOf, steps, World } from '@alkblobs/faults'
import { gone, killAt, Nursery } from './kills.js'
import { type Kind, makePool } from './subjects.js'

/** Three windows of 1 MiB and a part of one, so that a body is written in several calls. */
const VERY_LONG = 3 * 1024 * 1024 + 5

/**
 * What writes or removes, in the order in which each finds its own calls. A process dies before every call of the first, before each kind of call
 * that a later one adds, and before each repetition of those that write the bytes of a body.
 */
const STEPS: readonly { readonly operation: string; readonly name: string; readonly largeLength?: number }[] = [
  { operation: 'put', name: 'a large one' },
  { operation: 'put', name: 'a large stream', largeLength: VERY_LONG },
  { operation: 'put', name: 'a small one' },
  { operation: 'delete', name: 'one of each size' },
  { operation: 'sweep', name: 'that stages and removes' },
  { operation: 'maintain', name: 'with a scan' }
]
const WRITES_BODY = /^write large|lo_put|lo_from_bytea/

interface Inside {
  readonly step: Step
  readonly inside: { readonly call: string; readonly nth: number }
  readonly largeLength?: number
}

/** Kills a process before the calls of the medium that the steps make. Answers which. */
export async function killInside(kind: Kind): Promise<readonly string[]> {
  const pool = await makePool(kind)
  const world = new World(pool.subject, definition => faulty(definition, new FaultPlan()))
  const admin = pool.database && (await pgAdmin(pool.database.url))
  const nursery = new Nursery(pool)
  const isGone = async () => admin === undefined || (await sessionsOf(admin)).length === 0
  const struck: string[] = []
  try {
    await world.open()
    await world.pair()
    await world.close()
    for (const { operation, name, ...how } of STEPS) {
      const step = steps.find(each => each.operation === operation && each.name === name) as Step
      for (const place of await placesIn(nursery, { step, ...how }, new Set(struck), [...world.live.keys()])) {
        const { call, nth } = place.inside
        const what = `${call}, number ${nth}, of ${operation}`
        const ticket = ledger.arm(`SIGKILL before ${what}`)
        const acknowledged = await killAt(await nursery.next(), place, [...world.live.keys()])
        if (acknowledged === undefined) {
          // What a timer brings about does not come every time.
          ticket.retract()
          await gone(isGone)
          continue
        }
        ticket.fire([], 'the process waited there and ended by SIGKILL')
        ticket.finish()
        struck.push(call)
        for (const [key, bytes] of acknowledged) world.live.set(key, bytes)
        await gone(isGone)
        // Whoever dies leaves rows of all that he made: nothing has to be searched for.
        await assertWhole(world, { scan: false })
        await world.close()
        world.forgetOld()
      }
    }
  } finally {
    await nursery.close()
    await world.close()
    await admin?.close()
    await pool.remove()
  }
  return struck
}

/** Lets a process take the step unharmed, and answers where in it one is to die. */
async function placesIn(
  nursery: Nursery,
  how: Omit<Inside, 'inside'>,
  known: ReadonlySet<string>,
  live: readonly BlobKey[]
): Promise<readonly Inside[]> {
  const victim = await nursery.next()
  const inside = { call: 'none', nth: 1 }
  const { step, ...more } = how
  victim.go(JSON.stringify({ step: step.name, operation: step.operation, ...more, inside, live }))
  const { calls } = await passed(victim)
  await victim.kill()
  const isAll = known.size === 0
  return calls.flatMap((call, at) => {
    const nth = calls.slice(0, at + 1).filter(each => each === call).length
    const isNew = nth === 1 ? !known.has(call) : WRITES_BODY.test(call)
    return isAll || isNew ? [{ ...how, inside: { call, nth } }] : []
  })
}

async function passed(victim: Awaited<ReturnType<Nursery['next']>>): Promise<{ readonly calls: readonly string[] }> {
  for (;;) {
    const said = await victim.next()
    if (said.at === 'passed') return { calls: said.calls as readonly string[] }
  }
}
