/** Small blobs in rows of PostgreSQL, against the ways in which the driver moves rows by hand. */
import { freshKeys, freshList, spreadNumbers } from '../content.mjs'
import { openPgPool } from '../peers/pg-pool.mjs'
import { arrayOf, batchesPerSecond, binaryRows, copyIn, copyOut, openClients } from '../peers/pg-raw.mjs'
import { putAndRelease } from '../peers/pool.mjs'
import { perSecond } from '../rounds.mjs'

const LENGTH = 16 * 1024
const IN_FLIGHT = 32
const TABLE = `
  (key bytea PRIMARY KEY CHECK (octet_length(key) = 32), body bytea NOT NULL); ALTER TABLE $ ALTER body SET STORAGE EXTERNAL`
const NOT_OURS = 'no hash, no dedup, no pins'

const best = (round, ids) => Math.max(...ids.map(id => round[id].figure))

export const pgPut = {
  id: 'pg-put',
  needs: 'postgres',
  unit: 'puts/s',
  titleOf: () => `16 KiB, new content, ${IN_FLIGHT} in flight, PostgreSQL`,
  async contestants({ server, scale, closing }) {
    const store = await openPgPool(server, 'bench_put')
    closing(() => store.close())
    const clients = await openClients(server, 4, closing)
    await makeTable(clients[0], 'bench_put_raw')
    const { count, lead } = scale.pg
    const fresh = () => freshList(lead + count, LENGTH)
    const batches = (lanes, put) => () => {
      const [keys, bodies] = [freshKeys(count), freshList(count, LENGTH)]
      const work = (client, from, to) => put(client, keys.slice(from, to), bodies.slice(from, to))
      return batchesPerSecond(clients.slice(0, lanes), { count, width: IN_FLIGHT / lanes }, work)
    }
    return [
      {
        id: 'alkblobs',
        name: 'alkblobs postgres',
        note: 'durable, hashed, pinned and released',
        run: () => {
          const contents = fresh()
          return perSecond({ count, lead, width: IN_FLIGHT }, i => putAndRelease(store, contents[i]))
        }
      },
      {
        id: 'copy1',
        name: 'COPY, 32 rows at a time',
        note: `durable; ${NOT_OURS}; knows all 32 beforehand`,
        run: batches(1, (client, keys, bodies) => copyIn(client, 'bench_put_raw', keys, bodies))
      },
      {
        id: 'copy2',
        name: 'COPY, 16 rows on each of two connections',
        note: `durable; ${NOT_OURS}; knows all 16 beforehand`,
        run: batches(2, (client, keys, bodies) => copyIn(client, 'bench_put_raw', keys, bodies))
      },
      {
        id: 'joined',
        name: 'INSERT of 16 rows on each of two connections',
        note: `durable; ${NOT_OURS}; knows all 16 beforehand`,
        run: batches(2, insertJoined)
      },
      {
        id: 'pipelined',
        name: 'INSERT of a row, 8 pipelined on each of four',
        note: `durable; ${NOT_OURS}`,
        run: () => {
          const [keys, bodies] = [freshKeys(count), freshList(count, LENGTH)]
          const put = i => clients[i % clients.length].sql.unsafe(INSERT, [keys[i], bodies[i]], { prepare: true })
          return perSecond({ count, width: IN_FLIGHT }, put)
        }
      }
    ]
  },
  ratiosOf: () => [
    {
      id: 'pg-put',
      value: round => round.alkblobs.figure / best(round, ['copy1', 'copy2', 'joined', 'pipelined']),
      atLeast: 0.9,
      against: 'the best of them by hand, in each round'
    },
    {
      id: 'pg-put/rows',
      value: round => round.alkblobs.figure / best(round, ['joined', 'pipelined']),
      atLeast: 0.9,
      against: 'the best that sends rows as parameters'
    }
  ]
}

const INSERT = 'INSERT INTO bench_put_raw (key, body) VALUES ($1, $2)'

function insertJoined({ sql }, keys, bodies) {
  const values = keys.map((_, i) => `($${2 * i + 1}, $${2 * i + 2})`).join()
  const parameters = keys.flatMap((key, i) => [key, bodies[i]])
  return sql.unsafe(`INSERT INTO bench_put_raw (key, body) VALUES ${values}`, parameters, { prepare: true })
}

async function makeTable({ sql }, name) {
  await sql.unsafe(`CREATE TABLE ${name} ${TABLE.replace('$', name)}`)
}

export const pgGet = {
  id: 'pg-get',
  needs: 'postgres',
  unit: 'gets/s',
  titleOf: ({ scale }) =>
    `16 KiB at random out of ${scale.pg.getFrom.toLocaleString('en')}, ${IN_FLIGHT} in flight, PostgreSQL`,
  async contestants({ server, scale, closing }) {
    const store = await openPgPool(server, 'bench_get')
    closing(() => store.close())
    const clients = await openClients(server, 4, closing)
    await makeTable(clients[0], 'bench_get_raw')
    const { getCount: count, getFrom } = scale.pg
    const ours = await fillBoth(store, clients[0], getFrom)
    const digests = ours.map(digestOf)
    const picks = [...spreadNumbers(count, getFrom)]
    const batches = (lanes, get) => () =>
      batchesPerSecond(clients.slice(0, lanes), { count, width: IN_FLIGHT / lanes }, async (client, from, to) => {
        // A key that is picked twice comes once.
        const keys = [...new Set(picks.slice(from, to))].map(pick => digests[pick])
        if ((await get(client, keys)) !== keys.length * LENGTH) throw new Error('bytes are missing')
      })
    const any = keys => `SELECT key, body FROM bench_get_raw WHERE key = ANY('${arrayOf(keys)}'::bytea[])`
    const sum = (rows, lengthOf) => rows.reduce((length, row) => length + lengthOf(row), 0)
    return [
      {
        id: 'alkblobs',
        name: 'alkblobs postgres',
        note: 'verified',
        run: () =>
          perSecond({ count, width: IN_FLIGHT }, async i => {
            const blob = await store.get(ours[picks[i]])
            if ((await blob.bytes()).length !== LENGTH) throw new Error('bytes are missing')
          })
      },
      {
        id: 'cursor',
        name: 'binary cursor, 16 keys on each of two',
        note: 'not verified; knows all 16 beforehand',
        run: batches(2, async (client, keys) => sum(await binaryRows(client, any(keys)), ([, body]) => body.length))
      },
      {
        id: 'copy',
        name: 'COPY, 16 keys on each of two',
        note: 'not verified; knows all 16 beforehand',
        run: batches(2, (client, keys) => copyOut(client, any(keys), keys.length))
      },
      {
        id: 'joined',
        name: 'SELECT of 16 keys on each of two',
        note: 'not verified; knows all 16 beforehand',
        run: batches(2, async ({ sql }, keys) =>
          sum(await sql.unsafe(SELECT_ANY, [arrayOf(keys)], { prepare: true }), ({ body }) => body.length)
        )
      },
      {
        id: 'pipelined',
        name: 'SELECT of a key, 8 pipelined on each of four',
        note: 'not verified',
        run: () =>
          perSecond({ count, width: IN_FLIGHT }, async i => {
            const [row] = await clients[i % clients.length].sql.unsafe(SELECT, [digests[picks[i]]], { prepare: true })
            if (row.body.length !== LENGTH) throw new Error('bytes are missing')
          })
      }
    ]
  },
  ratiosOf: () => [
    {
      id: 'pg-get',
      value: round => round.alkblobs.figure / best(round, ['copy', 'joined', 'pipelined']),
      atLeast: 0.9,
      against: 'the best of joined, pipelined and COPY by hand, in each round'
    },
    {
      id: 'pg-get/cursor',
      value: round => round.alkblobs.figure / round.cursor.figure,
      atLeast: 0.9,
      against: 'a binary cursor by hand'
    }
  ]
}

const digestOf = key => Buffer.from(key.slice(7), 'hex')

/** The same keys in the pool and in the table by hand; answers them as the pool does. */
async function fillBoth(store, client, count) {
  const ours = []
  await perSecond({ count, width: IN_FLIGHT }, async i => {
    ours[i] = await putAndRelease(store, freshList(1, LENGTH)[0])
  })
  for (let i = 0; i < count; i += IN_FLIGHT) {
    const keys = ours.slice(i, i + IN_FLIGHT).map(digestOf)
    await copyIn(client, 'bench_get_raw', keys, freshList(keys.length, LENGTH))
  }
  await client.sql.unsafe('VACUUM ANALYZE bench_get_raw')
  await client.sql.unsafe('VACUUM ANALYZE bench_get.entries')
  return ours
}

const SELECT = 'SELECT body FROM bench_get_raw WHERE key = $1'
const SELECT_ANY = 'SELECT key, body FROM bench_get_raw WHERE key = ANY($1::bytea[])'
