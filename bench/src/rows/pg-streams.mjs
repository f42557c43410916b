/** Large blobs as large objects of PostgreSQL, against every way in which the driver moves them by hand. */
import { freshStream } from '../content.mjs'
import {
  exportFile,
  importFile,
  readAsText,
  readByCopy,
  readByCursor,
  writeAsText,
  writeByCondition,
  writeByTable
} from '../peers/pg-objects.mjs'
import { openPgPool } from '../peers/pg-pool.mjs'
import { openClients } from '../peers/pg-raw.mjs'
import { putAndRelease } from '../peers/pool.mjs'
import { megabytesPerSecond } from '../rounds.mjs'

const KIB = 1024
const MIB = 1024 * KIB

const sizeOf = ({ scale }) => `${scale.pg.streamLength / MIB} MiB`
const roundsOf = ({ scale }) => Math.min(scale.streamRounds, 5)
const best = (round, ids) => Math.max(...ids.map(id => round[id].figure))

const WRITES = [
  ['base64', 'lo_put of 1 MiB as base64 text', (client, stream) => writeAsText(client, stream, MIB, 'base64')],
  ['hex', 'lo_put of 1 MiB as hexadecimal text', (client, stream) => writeAsText(client, stream, MIB, 'hex')],
  ['table', 'COPY of 1 MiB into a temporary table, lo_put', (client, stream) => writeByTable(client, stream, MIB)],
  [
    'copy256',
    'COPY of 256 KiB, written by its condition',
    (client, stream) => writeByCondition(client, stream, 256 * KIB)
  ],
  ['copy1024', 'COPY of 1 MiB, written by its condition', (client, stream) => writeByCondition(client, stream, MIB)]
]

export const pgloPut = {
  id: 'pglo-put',
  needs: 'postgres',
  unit: 'MB/s',
  titleOf: bench => `a stream of ${sizeOf(bench)} in chunks of 64 KiB, new content, large objects`,
  roundsOf,
  async contestants({ server, scale, closing }) {
    const store = await openPgPool(server, 'bench_lo_put')
    closing(() => store.close())
    const [client] = await openClients(server, 1, closing)
    const { streamLength } = scale.pg
    const measure = put => () => megabytesPerSecond(streamLength, () => put(freshStream(streamLength)))
    await exportFile(client, await writeByCondition(client, freshStream(streamLength), MIB))
    return [
      {
        id: 'alkblobs',
        name: 'alkblobs postgres + pglo',
        note: 'durable, hashed, pinned and released',
        run: measure(stream => putAndRelease(store, stream))
      },
      ...WRITES.map(([id, name, write]) => ({
        id,
        name,
        note: 'durable; no hash, no dedup, no row beside it',
        run: measure(stream => write(client, stream))
      })),
      {
        id: 'import',
        name: 'lo_import on the server',
        note: 'durable; the limit: nothing comes from a client',
        run: () => megabytesPerSecond(streamLength, () => importFile(client))
      }
    ]
  },
  ratiosOf: () => [
    {
      id: 'pglo-put',
      value: round =>
        round.alkblobs.figure /
        best(
          round,
          WRITES.map(([id]) => id)
        ),
      atLeast: 0.9,
      against: 'the best of them by hand, in each round'
    },
    {
      id: 'pglo-put/import',
      value: round => round.alkblobs.figure / round.import.figure,
      atLeast: 0.6,
      against: 'lo_import on the server'
    }
  ]
}

const READS = [
  ['base64', 'lo_get of 1 MiB as base64 text', (...of) => readAsText(...of, MIB, 'base64'), ''],
  ['cursor256', 'binary cursor, 256 KiB, two ahead', (...of) => readByCursor(...of, 256 * KIB, 2), ''],
  ['cursor1024', 'binary cursor, 1 MiB, one ahead', (...of) => readByCursor(...of, MIB, 1), ''],
  [
    'copy256',
    'one COPY of all, 256 KiB a row',
    (...of) => readByCopy(...of, 256 * KIB),
    '; holds its session to the end'
  ],
  ['copy1024', 'one COPY of all, 1 MiB a row', (...of) => readByCopy(...of, MIB), '; holds its session to the end']
]

export const pgloGet = {
  id: 'pglo-get',
  needs: 'postgres',
  unit: 'MB/s',
  titleOf: bench => `${sizeOf(bench)} read whole, large objects, caches warm`,
  roundsOf,
  async contestants({ server, scale, closing }) {
    const { streamLength } = scale.pg
    const store = await openPgPool(server, 'bench_lo_get')
    closing(() => store.close())
    const [client] = await openClients(server, 1, closing)
    const key = await putAndRelease(store, freshStream(streamLength))
    const oid = await writeByCondition(client, freshStream(streamLength), MIB)
    const measure = get => () =>
      megabytesPerSecond(streamLength, async () => {
        if ((await get()) !== streamLength) throw new Error('bytes are missing')
      })
    return [
      { id: 'alkblobs', name: 'alkblobs postgres + pglo', note: 'verified', run: measure(() => drain(store, key)) },
      ...READS.map(([id, name, read, more]) => ({
        id,
        name,
        note: `not verified${more}`,
        run: measure(() => read(client, oid, streamLength))
      }))
    ]
  },
  ratiosOf: () => [
    {
      id: 'pglo-get',
      value: round => round.alkblobs.figure / best(round, ['base64', 'cursor256', 'cursor1024']),
      atLeast: 0.9,
      against: 'the best of them by hand that holds nothing between windows'
    },
    {
      id: 'pglo-get/copy',
      value: round => round.alkblobs.figure / best(round, ['copy256', 'copy1024']),
      atLeast: 0.9,
      against: 'one COPY of all by hand, whose reader must not be slow'
    }
  ]
}

async function drain(store, key) {
  let length = 0
  for await (const chunk of await store.get(key)) length += chunk.length
  return length
}
