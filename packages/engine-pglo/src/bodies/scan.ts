/**
 * Everything this engine ever made and still holds: `scan`, in the order of the stage ids.
 *
 * A body being written is in a transaction that nobody else sees, and vanishes with it, so there are no halves; but one that is
 * being removed in several transactions is answered like a half, for its stage can no longer be anything else.
 */
import { type Call, type Found, formatKey, type ScanPage, type StageId } from '@alkblobs/core/engine'
import { ask, type Medium } from '../medium.js'
import { locatorOf } from '../names.js'
import { claimed } from './claim.js'

type Row = [stage: StageId | null, key: string, length: string, held: string | null, dropping: boolean]

export async function scan(medium: Medium, after: string | undefined, limit: number, call: Call): Promise<ScanPage> {
  const isVirgin = medium.poolId === undefined && (await claimed(medium, call)) === undefined
  if (isVirgin) return { found: [], next: undefined }
  const rows =
    after === undefined
      ? await ask<Row>(medium, call, page(medium, ''), [limit])
      : await ask<Row>(medium, call, page(medium, 'WHERE stage > $2::text::uuid'), [limit, after])
  const found = rows.flatMap(row => foundOf(medium, row))
  return { found, next: found.length === limit ? found.at(-1)?.stage : undefined }
}

function foundOf({ algorithm }: Medium, [stage, key, length, held, dropping]: Row): Found[] {
  // The claim alone: no body after the cursor.
  if (stage === null) return []
  if (dropping) return [{ stage }]
  const sealed = {
    locator: locatorOf(stage),
    key: formatKey(algorithm, Buffer.from(key, 'hex')),
    length: Number(held ?? 0),
    whole: held === length
  }
  return [{ stage, sealed }]
}

/**
 * A page and the claim. The object of each row is looked up by its number in a subquery with a value: for a join the server may
 * read the list of all objects, once for every page.
 */
function page({ tables }: Medium, after: string): string {
  return `SELECT c.pool_id, b.stage, b.key, b.length, b.held, b.dropping
    FROM ${tables.claim} c LEFT JOIN LATERAL (
      SELECT encode(uuid_send(e.stage), 'hex') AS stage, encode(e.key, 'hex') AS key, e.length::text AS length,
        (SELECT lo_lseek64(lo_open(m.oid, 262144), 0, 2)::text FROM pg_largeobject_metadata m WHERE m.oid = e.loid) AS held,
        e.dropping
      FROM ${tables.entries} e ${after} ORDER BY e.stage LIMIT $1::integer
    ) b ON true ORDER BY b.stage`
}
