/**
 * Processes that are killed inside of a call of the contract: before a call that the engine makes of its medium. A body that is written and not yet
 * under its name, under its name and its folder not yet synced, a transaction of SQLite that is half done, each message to a server.
 */
import type { BlobKey } from '@alkblobs/core'
import { assertWhole, FaultPlan, faulty, ledger, pgAdmin, type Step, sessionsOf, steps, World } from '@alkblobs/faults'
import { gone, killAt, Nursery } from './kills.js'
import { type Kind, makePool } from './subjects.js'

/** What writes or removes, in the order in which each finds its own calls. */
const STEPS = [
  ['put', 'a large one'],
  ['put', 'a small one'],
  ['delete', 'one of each size'],
  ['sweep', 'that stages and removes'],
  ['maintain', 'with a scan']
] as const

interface Inside {
  readonly step: Step
  readonly inside: { readonly call: string; readonly nth: number }
}

/** Kills a process before every call of the medium that a long put makes, and before each kind of call that the other steps add. Answers where. */
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
    for (const [operation, name] of STEPS) {
      const step = steps.find(each => each.operation === operation && each.name === name) as Step
      for (const place of await placesIn(nursery, step, new Set(struck), [...world.live.keys()])) {
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

/** Lets a process take the step unharmed, and answers what it asked of its media: of the first step all, of a later one what none did before. */
async function placesIn(
  nursery: Nursery,
  step: Step,
  known: ReadonlySet<string>,
  live: readonly BlobKey[]
): Promise<readonly Inside[]> {
  const victim = await nursery.next()
  const inside = { call: 'none', nth: 1 }
  victim.go(JSON.stringify({ step: step.name, operation: step.operation, inside, live }))
  const { calls } = await passed(victim)
  await victim.kill()
  const isAll = known.size === 0
  return calls.flatMap((call, at) => {
    const nth = calls.slice(0, at + 1).filter(each => each === call).length
    return isAll || (nth === 1 && !known.has(call)) ? [{ step, inside: { call, nth } }] : []
  })
}

async function passed(victim: Awaited<ReturnType<Nursery['next']>>): Promise<{ readonly calls: readonly string[] }> {
  for (;;) {
    const said = await victim.next()
    if (said.at === 'passed') return { calls: said.calls as readonly string[] }
  }
}
