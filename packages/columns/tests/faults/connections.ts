/**
 * Connections that end in the middle of a call: ended by the server, which says so (L1); cut on the way, by an end that nobody announced or by
 * a reset (L2). Each call of the facade meets each of them, on one store that is never opened anew; the next try succeeds.
 */
import { randomUUID } from 'node:crypto'
import {
  assertWhole,
  attempt,
  type Barrier,
  type Cell,
  cover,
  FaultPlan,
  type FaultyProxy,
  type FoundProxy,
  faulty,
  findProxy,
  isAt,
  ledger,
  type PgAdmin,
  pgAdmin,
  prepare,
  retry,
  sessionsOf,
  statementsBarrier,
  surfacesOf,
  type Target,
  terminateBackend,
  trace,
  World
} from '@alkblobs/faults'
import { expect } from 'vitest'
import { type Kind, makePool, type Pool } from './subjects.js'

/** How a connection can end, and what the way is called in the matrix. */
export const WAYS = [
  { layer: 'L1', leg: 'graceful' },
  { layer: 'L2', leg: 'graceful' },
  { layer: 'L2', leg: 'torn' }
] as const
type Way = (typeof WAYS)[number]

/** Longest that a call may take to reach the place where it is held. */
const REACH_MS = 3_000
export const LIMIT_MS = 300_000

interface Ground {
  readonly pool: Pool
  readonly world: World
  readonly plan: FaultPlan
  readonly admin: PgAdmin
  readonly proxy: FaultyProxy
  readonly found: FoundProxy
}

async function withGround(kind: Kind, work: (ground: Ground) => Promise<void>): Promise<void> {
  let found: FoundProxy | undefined
  let proxy: FaultyProxy | undefined
  const pool = await makePool(kind, {
    through: async database => {
      found = await findProxy(database)
      proxy = await found.createProxy(`connections-${randomUUID()}`)
      const url = new URL(database.url)
      url.host = `${proxy.host}:${proxy.port}`
      return url.href
    }
  })
  const plan = new FaultPlan()
  const world = new World(pool.subject, definition => faulty(definition, plan))
  const admin = await pgAdmin(pool.database?.url ?? '')
  try {
    await work({ pool, world, plan, admin, proxy: proxy as FaultyProxy, found: found as FoundProxy })
  } finally {
    await world.close().catch(() => undefined)
    await admin.close()
    await proxy?.delete()
    await found?.release()
    await pool.remove()
  }
}

/** Every table of the pool; what an engine asks of none of them is held on its way instead. */
async function tablesOf({ pool, admin }: Ground) {
  const rows = await admin.query<{ schema: string; table: string }>(
    `SELECT schemaname::text AS schema, tablename::text AS table FROM pg_tables
     WHERE schemaname IN (${pool.schemas.map(name => `'${name}'`).join(', ')})`
  )
  return rows.map(({ schema, table }) => ({ schema, table }))
}

/** Where a call is held. */
interface Hold {
  /** Resolves with the processes that serve the call, once it is held. `undefined`: it went by without being held. */
  held(over: Promise<unknown>): Promise<readonly number[] | undefined>
  letGo(): Promise<void>
}

async function holdAtServer(ground: Ground): Promise<Hold> {
  const barrier: Barrier = await statementsBarrier(ground.admin, await tablesOf(ground))
  return {
    async held(over) {
      const reached = barrier.reached(REACH_MS).then(pid => [pid])
      return await Promise.race([reached, over.then(() => undefined)]).finally(() => reached.catch(() => undefined))
    },
    letGo: () => barrier.open()
  }
}

async function holdOnTheWay(ground: Ground): Promise<Hold> {
  await ground.proxy.add({ name: 'held', type: 'latency', stream: 'upstream', attributes: { latency: 60_000 } })
  return {
    async held(over) {
      // Only our own proxy can tell when it holds something; of another one it is a matter of time.
      const isHeld = async () => !ground.found.faults.hasCounters || (await ground.proxy.counters('held')).chunks > 0
      const reached = (async () => {
        for (const end = performance.now() + REACH_MS; performance.now() < end; ) {
          await new Promise(resolve => setTimeout(resolve, 20))
          if (await isHeld()) return await sessionsOf(ground.admin)
        }
        return undefined
      })()
      return await Promise.race([reached, over.then(() => undefined)])
    },
    letGo: () => ground.proxy.remove('held')
  }
}

/** Ends the connection that the call is on. Answers the proof that it ended. */
async function end({ admin, proxy }: Ground, { layer }: Way, pids: readonly number[]): Promise<string> {
  if (layer === 'L1') {
    const gone: number[] = []
    for (const pid of pids) {
      // Of several, one may have been about to end by itself.
      if (pids.length === 1 || (await sessionsOf(admin)).includes(pid)) {
        await terminateBackend(admin, pid)
        gone.push(pid)
      }
    }
    expect(gone).not.toEqual([])
    return `processes ${gone.join(', ')} are gone`
  }
  const { enabled } = await proxy.disable()
  expect(enabled).toBe(false)
  return 'the proxy has closed every connection'
}

/** Strikes one call in one way. Answers whether it could be held there. */
async function strike(
  ground: Ground,
  target: Target,
  way: Way,
  hold: (ground: Ground) => Promise<Hold>
): Promise<boolean> {
  const { world, plan, proxy } = ground
  const prepared = await prepare(world, target.step)
  let holding: Hold | undefined
  let arrive: (hold: Hold) => void = () => undefined
  const arrived = new Promise<Hold>(resolve => {
    arrive = resolve
  })
  const act = async () => {
    holding = await hold(ground)
    arrive(holding)
  }
  const armed = plan.arm({ at: isAt(target), how: { kind: 'act', act } })
  const cells: Cell[] = surfacesOf(target).map(surface => ({ surface, engine: target.engine, ...way }))
  const ticket = ledger.arm(`${way.layer} ${way.leg} at ${target.point} of ${target.engine}, ${target.step.operation}`)
  const over = attempt(world, target.step, prepared)
  const ended = over.catch(() => undefined)
  const pids = await Promise.race([arrived, ended.then(() => undefined)]).then(each => each?.held(ended))
  const proof = pids === undefined ? undefined : await end(ground, way, pids)
  await holding?.letGo()
  await over
  if (armed.hasFired) armed.finish()
  else armed.retract()
  await proxy.enable()
  if (proof === undefined) ticket.retract()
  else {
    ticket.fire(cells, proof)
    ticket.finish()
  }
  await retry(world, target.step, prepared)
  return proof !== undefined
}
/** The body store of a joint commit: an engine that is nobody's kv tier meets one only here, so it is struck beside the kv tier of this pool. */
export function isJoining({ engine, point, step }: Target): boolean {
  return engine === 'pglo' && point === 'bodies.writer.seal' && step.operation === 'joining'
}

/** Strikes every surface of one engine of the pool. Answers what could not be struck. */
export async function strikeAll(kind: Kind, way: Way, engine: string): Promise<readonly string[]> {
  let missed: readonly string[] = []
  await withGround(kind, async ground => {
    const { pool, world, plan, proxy } = ground
    await world.open()
    if (way.leg === 'torn') await proxy.resetWhenClosed()
    const targets = (await trace(world, plan, pool.steps)).filter(each => each.engine === engine || isJoining(each))
    missed = await cover(
      targets,
      async target =>
        (await strike(ground, target, way, holdAtServer)) || (await strike(ground, target, way, holdOnTheWay))
    )
    await assertWhole(world)
  })
  return missed
}
