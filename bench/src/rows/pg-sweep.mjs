/** A sweep of a pool in PostgreSQL in which everything is live: by the word of a source that enumerates, and by that of a table. */
import { createHash } from 'node:crypto'
import { closeSync, openSync, writeSync } from 'node:fs'
import { inChild } from '../child.mjs'
import { openPgPool } from '../peers/pg-pool.mjs'
import { openClient } from '../peers/pg-raw.mjs'
import { putAndRelease } from '../peers/pool.mjs'

const POOL = import.meta.resolve('../children/pg-sweep-of-pool.mjs')
const BY_HAND = import.meta.resolve('../children/pg-sweep-by-hand.mjs')
const written = count => count.toLocaleString('en')

function sweepRow({ id, title, isTable, atMost, byHand }) {
  return {
    id,
    needs: 'postgres',
    unit: 'us/entry',
    titleOf: ({ scale }) =>
      `${scale.sweepEntries.map(written).join(' and ')} entries in PostgreSQL, all of them live by ${title}`,
    warmUp: false,
    roundsOf: ({ scale }) => Math.min(3, scale.rounds),
    async contestants({ server, site, scale }) {
      const filled = []
      for (const entries of scale.sweepEntries)
        filled.push(await fill(server, site, `bench_${isTable ? 'sql' : 'scale'}_${entries}`, entries, isTable))
      return filled.flatMap(of => [
        {
          id: `alkblobs${of.entries}`,
          name: `alkblobs, ${written(of.entries)}`,
          note: 'pins, window, lease and trash as well; in pages',
          run: () => inChild(POOL, { server, ...of })
        },
        {
          id: `hand${of.entries}`,
          name: `by hand, ${written(of.entries)}`,
          note: `${byHand}: no pins, no window, no lease; one statement as long as it takes`,
          run: () => inChild(BY_HAND, { server, ...of })
        }
      ])
    },
    ratiosOf: ({ scale: { sweepEntries } }) => [
      ...sweepEntries.flatMap(entries => ratiosAt(id, entries, atMost)),
      ...growth(id, sweepEntries)
    ]
  }
}

export const pgSweepScale = sweepRow({
  id: 'pg-sweep-scale',
  title: 'a source that enumerates',
  isTable: false,
  atMost: 1.5,
  byHand: 'binary COPY into a temporary table and anti-join'
})

export const pgSweepSql = sweepRow({
  id: 'pg-sweep-sql',
  title: 'a table of the application',
  isTable: true,
  atMost: 1.3,
  byHand: 'anti-join'
})

function ratiosAt(id, entries, atMost) {
  return [
    {
      id: `${id}/${entries}`,
      value: round => round[`alkblobs${entries}`].figure / round[`hand${entries}`].figure,
      atMost,
      against: 'time of the look by hand'
    },
    {
      id: `${id}/${entries}/memory`,
      value: round => round[`alkblobs${entries}`].peakMiB,
      atMost: 100,
      unit: 'MiB',
      against: 'resident set over idle'
    }
  ]
}

function growth(id, sweepEntries) {
  if (sweepEntries.length < 2) return []
  const [few, many] = sweepEntries
  return [
    {
      id: `${id}/growth`,
      value: round => round[`alkblobs${many}`].figure / round[`alkblobs${few}`].figure,
      atMost: 1.3,
      against: `time an entry, ${written(many)} against ${written(few)}`
    }
  ]
}

/** A pool with rows that were put by hand, since a million puts take minutes: their keys are digests of numbers. */
async function fill(server, site, schema, entries, isTable) {
  const store = await openPgPool(server, schema)
  await putAndRelease(store, 'makes the schema')
  await store.close()
  const { sql, close } = await openClient(server)
  const digests = `SELECT sha256(int8send(g)) FROM generate_series(1, ${entries}) AS g ORDER BY 1`
  await sql.unsafe(`
    DELETE FROM ${schema}.gc_pins; DELETE FROM ${schema}.entries;
    INSERT INTO ${schema}.entries (key, length, body) SELECT *, 16, '\\x00112233445566778899aabbccddeeff' FROM (${digests}) AS d`)
  await sql.unsafe(`VACUUM ANALYZE ${schema}.entries`)
  const table = isTable ? `public.live_of_${schema}` : undefined
  if (isTable) {
    await sql.unsafe(`CREATE TABLE ${table} (key bytea PRIMARY KEY); INSERT INTO ${table} ${digests}`)
    await sql.unsafe(`VACUUM ANALYZE ${table}`)
  }
  await close()
  return { schema, entries, table, keys: keysFile(site, entries) }
}

/** The same digests, as the enumerating source reads them. */
function keysFile(site, entries) {
  const file = `${site.folder('keys')}/keys`
  const descriptor = openSync(file, 'w')
  const number = Buffer.alloc(8)
  for (let n = 1; n <= entries; n++) {
    number.writeBigInt64BE(BigInt(n))
    writeSync(descriptor, createHash('sha256').update(number).digest())
  }
  closeSync(descriptor)
  return file
}
