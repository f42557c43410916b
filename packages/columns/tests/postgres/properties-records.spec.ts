/** Records and claims that somebody has changed, in the tables of a server. */
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'
import { freshDatabase, noServer, type TestDatabase } from '@alkblobs/testkit'
import fc from 'fast-check'
import { describe, onTestFinished, test } from 'vitest'
import { expectWhole, makePool, useAll } from '../records.js'

/** Each run opens two engines on the server, three times. */
const RUNS = 12

async function poolOf() {
  const database = await freshDatabase()
  onTestFinished(() => database.drop())
  const { url } = database
  const media = { kv: postgres({ url, schema: 'kv', poolMax: 2 }), large: pglo({ url, schema: 'lo', poolMax: 2 }) }
  return { database, media, pool: await makePool(media) }
}

async function change(database: TestDatabase, table: string, values: Readonly<Record<string, unknown>>): Promise<void> {
  const names = Object.keys(values)
  const sets = names.map((name, i) => `${name} = $${i + 1}`).join(', ')
  await database.query(`UPDATE ${table} SET ${sets}`, names.map(name => values[name]) as never)
}

const texts = fc.oneof(fc.constantFrom('', 'sha256', 'blake3', 'x'.repeat(5_000)), fc.stringMatching(/^[ -~]{0,40}$/))
const integers = fc.oneof(fc.constantFrom(-1, 0, 1, 2, 2 ** 31 - 1), fc.integer({ min: -(2 ** 31), max: 2 ** 31 - 1 }))
const orNull = <T>(values: fc.Arbitrary<T>) => fc.option(values, { freq: 3 })

const record = {
  pool_id: orNull(texts),
  protocol: orNull(integers),
  algorithm: orNull(texts),
  window_delay_ms: orNull(fc.oneof(integers, fc.constantFrom(String(2n ** 62n), String(-(2n ** 62n))))),
  bodies_claimed: orNull(fc.boolean())
}
const claim = { format: integers, pool_id: texts, fence: integers }

/** One or two columns at a time: of a row that is wrong throughout only the first look is tried. */
const some = (columns: Readonly<Record<string, fc.Arbitrary<unknown>>>) =>
  fc
    .subarray(Object.keys(columns), { minLength: 1, maxLength: 2 })
    .chain(names => fc.record(Object.fromEntries(names.map(name => [name, columns[name] as fc.Arbitrary<unknown>]))))

describe.skipIf(noServer() !== undefined)(
  'on a server, what was changed is a value or a typed error, and nothing live is lost',
  () => {
    test.each([
      ['the record of postgres', 'kv.meta', record],
      ['the claim of pglo', 'lo.lo_claim', claim]
    ] as const)(
      '%s',
      async (_, table, columns) => {
        const { database, media, pool } = await poolOf()
        const [before] = await database.query<Record<string, unknown>>(`SELECT * FROM ${table}`)
        await fc.assert(
          fc.asyncProperty(some(columns), async values => {
            await change(database, table, values)
            await useAll(media, pool)
            await change(database, table, before as Record<string, unknown>)
            await expectWhole(media, pool)
          }),
          { numRuns: RUNS }
        )
      },
      120_000
    )
  }
)
