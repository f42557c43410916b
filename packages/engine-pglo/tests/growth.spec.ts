// What a call reads does not grow with the number of bodies, even where nobody has counted them yet.
import { expect, it } from 'vitest'
import {
  backends,
  call,
  claimed,
  count,
  database,
  eventually,
  newStage,
  type Opened,
  onServer,
  readRange
} from './support.js'

const BODIES = 5_000
const PAGE = 10
/** Rounds that a plan may take to be kept for good. */
const ROUNDS = 8
const locator = (n: number) => `lo.${stage(n)}` as never
const stage = (n: number) => n.toString(16).padStart(32, '0')

onServer('what a call reads', () => {
  it('does not grow with the bodies', async () => {
    const db = await database()
    const first = await claimed(db)
    await first.engine.close()
    await db.query('ALTER TABLE lo.lo_entries SET (autovacuum_enabled = off)')
    await db.query(`INSERT INTO lo.lo_entries (stage, loid, key, length)
      SELECT lpad(to_hex(n), 32, '0')::uuid, lo_from_bytea(0, 'body'), decode(repeat('00', 32), 'hex'), 4
      FROM generate_series(1, ${BODIES}) n`)
    const from = BODIES / 2
    const calls = {
      scan: ({ bodies }: Opened) => bodies.scan(stage(from), PAGE, call),
      length: ({ bodies }: Opened) => bodies.length(locator(from), call),
      read: ({ bodies }: Opened) => readRange(bodies, locator(from)),
      create: async ({ bodies }: Opened) => (await bodies.create(newStage(), {}, call)).discard(),
      drop: ({ bodies }: Opened) => bodies.drop([...Array.from({ length: PAGE }, newStage), ...some], call)
    }
    const some = Array.from({ length: 90 }, (_, n) => locator(from + 1 + n))
    const spent: Record<string, number> = {}
    for (const [name, ask] of Object.entries(calls)) {
      const opened = await claimed(db)
      const before = await read()
      for (let round = 0; round < ROUNDS; round++) await ask(opened)
      await opened.engine.close()
      await eventually(async () => (await backends(db, 'idle')).length === 0)
      spent[name] = (await read()) - before
    }
    expect(Object.entries(spent).filter(([, n]) => n > BODIES / 2)).toEqual([])
    expect(await count(db, 'lo.lo_entries')).toBe(BODIES - some.length)

    async function read(): Promise<number> {
      await db.query('SELECT pg_stat_force_next_flush()')
      const [row] = await db.query<{ n: string }>(`SELECT
        (SELECT sum(seq_tup_read) FROM pg_stat_all_tables WHERE relname IN ('lo_entries', 'pg_largeobject_metadata')) +
        (SELECT sum(idx_tup_read) FROM pg_stat_all_indexes WHERE relname IN ('lo_entries', 'pg_largeobject_metadata')) AS n`)
      return Number(row?.n)
    }
  })
})
