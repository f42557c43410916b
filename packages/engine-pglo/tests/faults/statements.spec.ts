// The server itself refuses a statement that makes a body or its entry: the first of its class, the second, and so on, under every step that an
// application takes, once and for good. Nothing acknowledged is lost. The other statements of the catalog are tried in packages/columns.
import { openStore } from '@alkblobs/core'
import { createMedium, mem } from '@alkblobs/engine-mem'
import {
  attempt,
  away,
  contestedSurfaces,
  fullDisk,
  ledger,
  outOfDescriptors,
  PgFaultArmer,
  partsOf,
  pgAdmin,
  prepare,
  retry,
  type StatementClass,
  steps,
  World
} from '@alkblobs/faults'
import '@alkblobs/faults/vitest'
import { expect, it } from 'vitest'
import { pglo } from '../../src/index.js'
import { atEnd, context, database, onServer } from '../support.js'

const LIMIT_MS = 120_000
const STATEMENTS_MAX = 50
const SCHEMA = 'lo'

onServer('an engine on a server', () => {
  it('offers what the list of surfaces says of it, and names what its driver throws', async () => {
    const { url } = await database()
    const engine = await pglo({ url, schema: SCHEMA }).open(context)
    expect(partsOf(engine)).toEqual(contestedSurfaces.engines.pglo?.parts.filter(part => part !== 'catalog.lease.live'))
    expect([fullDisk('postgres'), outOfDescriptors('postgres'), away('postgres')].map(engine.classify)).toEqual([
      'full',
      'exhausted',
      'transient'
    ])
    await engine.close()
  })
})

onServer('a statement that the server refuses', () => {
  it.each(['entries', 'lo_entries'] as const satisfies readonly StatementClass[])(
    '(%s) loses nothing',
    { timeout: LIMIT_MS },
    async statement => {
      const db = await database()
      const admin = await pgAdmin(db.url)
      atEnd(() => admin.close())
      const medium = createMedium()
      const world = new World(
        {
          threshold: 100,
          hasBodies: true,
          secrets: [db.url],
          open: wrap =>
            openStore({
              kv: wrap(mem({ medium })),
              large: wrap(pglo({ url: db.url, schema: SCHEMA })),
              threshold: 100,
              windowDelayMs: 0,
              trashDelayMs: 0,
              operationTimeoutMs: 4_000
            }),
          expire: async () => {},
          residue: async () => ({})
        },
        definition => definition
      )
      atEnd(() => world.close())
      await world.open()
      await world.pair()
      const armer = new PgFaultArmer(admin, ledger)
      let injected = 0
      for (const step of steps) {
        world.forgetOld()
        for (let nth = 1; nth <= STATEMENTS_MAX; nth++) {
          const prepared = await prepare(world, step)
          const lasting = nth % 2 === 0 ? 'for good' : 'once'
          const armed = await armer.arm({
            schema: SCHEMA,
            statement,
            nth,
            lasting,
            sqlState: nth % 3 === 0 ? '53200' : '53100'
          })
          await attempt(world, step, prepared)
          const report = await armed.end()
          injected += report.injected
          await retry(world, step, prepared)
          if (report.injected === 0) break
        }
      }
      for (const [key, bytes] of world.live) {
        if (bytes.length <= 100) continue
        expect(bytes.equals((await (await world.store.get(key))?.bytes()) ?? Buffer.alloc(0))).toBe(true)
      }
      expect((await world.store.verify()).corrupt).toEqual([])
      expect(injected).toBeGreaterThan(0)
    }
  )
})
