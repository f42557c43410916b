/** Processes that are killed at a call of the contract, and what the next process finds. */
import { fileURLToPath } from 'node:url'
import type { BlobKey } from '@alkblobs/core'
import {
  assertWhole,
  cover,
  FaultPlan,
  faulty,
  ledger,
  pgAdmin,
  type Step,
  sessionsOf,
  surfacesOf,
  type Target,
  trace,
  Victim,
  World
} from '@alkblobs/faults'
import { isJoining } from './connections.js'
import { type Kind, makePool, type Pool, SCHEMA, THRESHOLD } from './subjects.js'

const script = fileURLToPath(new URL('./children/worker.mjs', import.meta.url))
/** Comes before the engines, which take the functions of the file system as they find them. */
const node = ['--import', new URL('./children/medium.mjs', import.meta.url).href]
/** Processes that are started before they are needed: starting takes longer than dying. */
const AHEAD = 2
export const LIMIT_MS = 300_000

/** Starts processes ahead of their use; each waits to be told what to do. */
export class Nursery {
  readonly #given: string
  readonly #waiting: Victim[] = []

  constructor({ place }: Pool) {
    this.#given = JSON.stringify({ place, schema: SCHEMA, threshold: THRESHOLD })
  }

  async next(): Promise<Victim> {
    while (this.#waiting.length < AHEAD) this.#waiting.push(new Victim({ script, node, args: [this.#given] }))
    const victim = this.#waiting.shift() as Victim
    this.#waiting.push(new Victim({ script, node, args: [this.#given] }))
    const { at } = await victim.reached()
    if (at !== 'started') throw new Error(`the process began with ${at}`)
    return victim
  }

  async close(): Promise<void> {
    await Promise.all(this.#waiting.map(victim => victim.release()))
  }
}

/** Where a process is to be killed: at a call of the contract, or inside of one, at a call of the medium. */
export type Place =
  | Pick<Target, 'step' | 'point' | 'engine'>
  | {
      readonly step: Step
      readonly inside: { readonly call: string; readonly nth: number }
      /** How long what it calls large is, in bytes, if not as for everybody. */
      readonly largeLength?: number
    }

/** Lets a process take the step up to the call, and kills it there. Answers what it had acknowledged. */
export async function killAt(
  victim: Victim,
  { step, ...where }: Place,
  live: readonly BlobKey[]
): Promise<ReadonlyMap<BlobKey, Buffer> | undefined> {
  victim.go(JSON.stringify({ step: step.name, operation: step.operation, ...where, live }))
  const { at, before } = await victim.reached()
  // A call that did not come this time is met another time.
  await victim.kill()
  if (at !== 'held') return undefined
  const said = [...before, ...victim.rest()]
  return new Map(
    said.flatMap(({ key, bytes }) =>
      key === undefined ? [] : [[key as BlobKey, Buffer.from(String(bytes), 'base64')]]
    )
  )
}

/**
 * Kills a process at every surface of the engine. After each death a new process finds everything that was acknowledged, completes a
 * sweep, and leaves nothing of the dead. Answers how many died.
 */
export async function killEverywhere(kind: Kind, engines: readonly string[]): Promise<number> {
  const pool = await makePool(kind)
  const plan = new FaultPlan()
  const world = new World(pool.subject, definition => faulty(definition, plan))
  const admin = pool.database && (await pgAdmin(pool.database.url))
  const nursery = new Nursery(pool)
  let kills = 0
  try {
    const targets = (await trace(world, plan, pool.steps)).filter(
      each => engines.includes(each.engine) || isJoining(each)
    )
    world.live.clear()
    await assertWhole(world)
    await world.close()
    const missed = await cover(targets, async target => {
      const { point, engine, step } = target
      const ticket = ledger.arm(`SIGKILL at ${point} of ${engine}, ${step.operation}`)
      // The process does not know the medium well enough to make one by itself.
      if (step.operation === 'maintain') await pool.subject.orphan?.()
      const acknowledged = await killAt(await nursery.next(), { step, point, engine }, [...world.live.keys()])
      if (acknowledged === undefined) {
        ticket.retract()
        await gone(async () => admin === undefined || (await sessionsOf(admin)).length === 0)
        return false
      }
      ticket.fire(
        surfacesOf(target).map(surface => ({ surface, engine, layer: 'L3' as const })),
        'the process waited there and ended by SIGKILL'
      )
      ticket.finish()
      kills += 1
      // Memory goes with its process, and what lay in it was never promised to anybody else.
      for (const [key, bytes] of acknowledged)
        if (!kind.startsWith('mem') || bytes.length > THRESHOLD) world.live.set(key, bytes)
      await gone(async () => admin === undefined || (await sessionsOf(admin)).length === 0)
      // A body that no row knows is made by hand or left by a memory that has gone; nothing else that died may leave one.
      await assertWhole(world, { scan: kind.startsWith('mem') || step.operation === 'maintain' })
      await world.close()
      world.forgetOld()
      return true
    })
    if (missed.length > 0) throw new Error(`nobody was killed at ${missed.join(', ')}`)
  } finally {
    await nursery.close()
    await world.close()
    await admin?.close()
    await pool.remove()
  }
  return kills
}

/** A server notices a dead client a moment later; until then it holds what the client held. */
export async function gone(isGone: () => Promise<boolean>): Promise<void> {
  for (const end = performance.now() + 5_000; !(await isGone()); ) {
    if (performance.now() > end) throw new Error('the server still has sessions of a process that was killed')
    await new Promise(resolve => setTimeout(resolve, 10))
  }
}
