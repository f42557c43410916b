// The server itself refuses a statement of the catalog: the first of its class, the second, and so on, under every step that an application
// takes, once and for good. Nothing acknowledged is lost, and nothing is left. The catalog is the one of `postgres-catalog`, which both engines on
// a server open; here it is the kv tier, with short bodies in its rows.
import {
  assertWhole,
  attempt,
  ledger,
  PgFaultArmer,
  pgAdmin,
  prepare,
  retry,
  type StatementClass,
  World
} from '@alkblobs/faults'
import '@alkblobs/faults/vitest'
import { noServer } from '@alkblobs/testkit'
import { describe, expect, it } from 'vitest'
import { makePool, SCHEMA } from './subjects.js'

const LIMIT_MS = 300_000
const STATEMENTS_MAX = 50
const CLASSES: readonly StatementClass[] = ['entries', 'gc_pins', 'gc_window', 'stages', 'trash']
const reason = noServer()

describe.skipIf(reason !== undefined)(
  `a statement that the server refuses${reason === undefined ? '' : ` (${reason})`}`,
  () => {
    it.each(CLASSES)('(%s) loses nothing and leaves nothing', { timeout: LIMIT_MS }, async statement => {
      const pool = await makePool('postgres + local')
      const world = new World(pool.subject, definition => definition)
      const admin = await pgAdmin(pool.database?.url ?? '')
      try {
        await world.open()
        await world.pair()
        const armer = new PgFaultArmer(admin, ledger)
        let injected = 0
        for (const step of pool.steps) {
          world.forgetOld()
          for (let nth = 1; nth <= STATEMENTS_MAX; nth++) {
            const prepared = await prepare(world, step)
            const lasting = nth % 2 === 0 ? 'for good' : 'once'
            const sqlState = nth % 3 === 0 ? '53200' : '53100'
            const armed = await armer.arm({ schema: SCHEMA, statement, nth, lasting, sqlState })
            await attempt(world, step, prepared)
            const report = await armed.end()
            injected += report.injected
            await retry(world, step, prepared)
            if (report.injected === 0) break
          }
        }
        expect(injected).toBeGreaterThan(0)
        await assertWhole(world)
      } finally {
        await world.close().catch(() => undefined)
        await admin.close()
        await pool.remove()
      }
    })
  }
)
