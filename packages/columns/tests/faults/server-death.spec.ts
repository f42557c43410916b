// The server dies in the middle of a call: killed (SIGKILL) or crashing (SIGQUIT), with the call held in one of its statements. After its
// recovery the same store goes on, on the same objects, without being opened anew. A cluster of its own, which nobody else uses.
import {
  assertWhole,
  attempt,
  FaultPlan,
  type FaultPoint,
  faulty,
  ledger,
  pgAdmin,
  prepare,
  retry,
  type Step,
  statementsBarrier,
  steps,
  surfacesAt,
  World
} from '@alkblobs/faults'
import '@alkblobs/faults/vitest'
import { noServer, startServer } from '@alkblobs/testkit'
import { describe, expect, it } from 'vitest'
import { makePool, type Pool } from './subjects.js'

const LIMIT_MS = 150_000

/** Where the server dies, one for each kind of transaction: of a put before and after its body, of a sweep and of a removal. */
const MOMENTS: readonly (readonly [operation: string, name: string, point: FaultPoint, engine: string])[] = [
  ['put', 'a small one', 'catalog.publish', 'postgres'],
  ['put', 'a large one', 'catalog.stage', 'postgres'],
  ['put', 'a large one', 'bodies.writer.seal', 'pglo'],
  ['put', 'a large one', 'catalog.publish', 'postgres'],
  ['get', 'whole, streamed and in part', 'bodies.read', 'pglo'],
  ['delete', 'one of each size', 'catalog.remove', 'postgres'],
  ['sweep', 'that stages and removes', 'catalog.stageCandidates', 'postgres'],
  ['sweep', 'that stages and removes', 'catalog.remove', 'postgres'],
  ['sweep', 'that stages and removes', 'bodies.drop', 'pglo'],
  ['sweep', 'that stages and removes', 'catalog.dropped', 'postgres']
]

const stepOf = (operation: string, name: string) =>
  steps.find(step => step.operation === operation && step.name === name) as Step

async function tablesOf(pool: Pool) {
  const rows = await pool.database?.query<{ schema: string; table: string }>(
    "SELECT schemaname::text AS schema, tablename::text AS table FROM pg_tables WHERE schemaname LIKE 'alkblobs%'"
  )
  return rows ?? []
}

const reason = noServer()

describe.skipIf(reason !== undefined)(`a server${reason === undefined ? '' : ` (${reason})`}`, () => {
  it('that dies under any transaction loses nothing that it acknowledged', { timeout: LIMIT_MS }, async () => {
    const server = await startServer()
    const pool = await makePool('postgres + pglo', { server })
    const plan = new FaultPlan()
    const world = new World(pool.subject, definition => faulty(definition, plan))
    try {
      await world.open()
      await world.pair()
      for (const [n, [operation, name, point, engine]] of MOMENTS.entries()) {
        const signal = n % 2 === 0 ? 'SIGKILL' : 'SIGQUIT'
        const step = stepOf(operation, name)
        const prepared = await prepare(world, step)
        const admin = await pgAdmin(pool.database?.url ?? '')
        const ticket = ledger.arm(`${signal} of the server at ${point}, ${operation}`)
        let held: (() => void) | undefined
        const arrived = new Promise<void>(resolve => {
          held = resolve
        })
        let barrier: Awaited<ReturnType<typeof statementsBarrier>> | undefined
        const armed = plan.arm({
          at: at => at.point === point && at.engine === engine && at.operation === operation,
          how: {
            kind: 'act',
            act: async () => {
              barrier = await statementsBarrier(admin, await tablesOf(pool))
              held?.()
            }
          }
        })
        const over = attempt(world, step, prepared)
        await arrived
        await barrier?.reached()
        await server.kill(signal)
        await over
        armed.finish()
        await admin.close().catch(() => undefined)
        await server.start()
        const surfaces = surfacesAt(point, operation)
        ticket.fire(
          surfaces.map(surface => ({ surface, engine, layer: 'L3' as const })),
          'a session waited in the statement when the postmaster was killed, and it was started anew'
        )
        ticket.finish()
        await retry(world, step, prepared)
      }
      await assertWhole(world)
      expect(world.live.size).toBeGreaterThan(0)
    } finally {
      await world.close().catch(() => undefined)
      await pool.remove()
      await server.release()
    }
  })
})
