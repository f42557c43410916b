/**
 * Trash: names of bodies that no entry uses, until they are dropped. A row that can be seen was committed with
 * `synchronous_commit`, which the session sets, so what is answered cannot be undone by a power loss of the server.
 */
import {
  type BlobKey,
  type Catalog,
  type DropRecord,
  digestOf,
  type Found,
  type Locator,
  type StageId,
  type Trashed
} from '@alkblobs/core/engine'
import type { Param } from '@alkblobs/postgres-session'
import type { Connection } from '../connection.js'
import { noPool, type Pool } from '../pool.js'
import { checkStamp } from './meta.js'

/** Two statements, for a name may be of any length: not even the empty one is before all others. */
const page = (after: string) => `
  SELECT what, encode(key, 'hex'), length, attempts FROM $.trash
  WHERE ${after} AND not_before <= clock_timestamp() ORDER BY what LIMIT $1::bigint`
const FIRST_PAGE = page('true')
const NEXT_PAGE = page('what > $2::text COLLATE "C"')
const DROPPED = `
  WITH held AS MATERIALIZED (
    SELECT what FROM $.trash WHERE what = ANY ($1::text[]) ORDER BY what FOR UPDATE
  )
  DELETE FROM $.trash t USING held h WHERE t.what = h.what`
const PUT_OFF = `
  WITH held AS MATERIALIZED (
    SELECT t.what, i.delay FROM $.trash t JOIN unnest($1::text[], $2::float8[]) AS i (what, delay)
    ON t.what = i.what ORDER BY t.what FOR UPDATE OF t
  )
  UPDATE $.trash t SET attempts = t.attempts + 1, not_before = clock_timestamp() + h.delay * interval '1 millisecond'
  FROM held h WHERE t.what = h.what`
/** What a scan found, each with whether any row knows it: by its stage, by trash of either name, by the entry that lies there. */
const FOUND = `
  SELECT i.n, i.stage, i.locator, i.key, i.length,
    coalesce(
      (SELECT true FROM $.stages s WHERE s.id = i.stage),
      (SELECT true FROM $.trash t WHERE t.what = i.stage),
      (SELECT true FROM $.trash t WHERE t.what = i.locator),
      (SELECT true FROM $.entries e WHERE e.key = i.key AND e.locator = i.locator),
      false) AS known
  FROM unnest($1::text[], $2::text[], $3::bytea[], $4::bigint[])
    WITH ORDINALITY AS i (stage, locator, key, length, n)`
const TRASH = `
  INSERT INTO $.trash (what, key, length, not_before)
  VALUES ($1, $2::bytea, $3::bigint, clock_timestamp() + $4::float8 * interval '1 millisecond')
  ON CONFLICT (what) DO NOTHING`
const KNOWN = `SELECT n, known FROM (${FOUND}) f`
const DISCARD = `
  INSERT INTO $.trash (what, key, length, not_before)
  SELECT coalesce(locator, stage), key, length, clock_timestamp() FROM (${FOUND}) f WHERE NOT known ORDER BY 1
  ON CONFLICT (what) DO NOTHING`

/** Puts the locator of a published body into trash. One that is there already keeps its row. */
export async function trashLocator(
  at: Connection,
  what: { locator: Locator; digest: Buffer; length: number; delayMs: number }
): Promise<void> {
  await at.run(TRASH, what.locator, what.digest, what.length, what.delayMs)
}

export function trashOf(pool: Pool): Pick<Catalog, 'trash' | 'known' | 'discard' | 'dropped'> {
  return {
    trash: (after, limit, call) =>
      pool.ask<Trashed[]>(
        call,
        () => [],
        async at => {
          const [page, ...from] = after === undefined ? [FIRST_PAGE] : [NEXT_PAGE, after]
          return (await at.rows<TrashRow>(page, limit, ...from)).map(row => trashedOf(pool, row))
        }
      ),
    known: (found, call) =>
      pool.ask(
        call,
        () => found.map(() => false),
        async at => {
          const rows = await at.rows<[bigint, boolean]>(KNOWN, ...parametersOf(found))
          const known = new Set(rows.filter(row => row[1]).map(([n]) => Number(n)))
          return found.map((_, i) => known.has(i + 1))
        }
      ),
    discard: (found, call) =>
      pool.write(call, noPool, async at => {
        await checkStamp(at)
        await at.run(DISCARD, ...parametersOf(found))
      }),
    dropped: (records, call) =>
      pool.write(
        call,
        () => undefined,
        at => record(at, records)
      )
  }
}

type TrashRow = [what: Locator | StageId, hex: string | null, length: bigint | null, attempts: number]

function trashedOf(pool: Pool, [what, hex, length, attempts]: TrashRow): Trashed {
  const key: BlobKey | undefined = hex === null ? undefined : pool.keyOf(hex)
  return { what, key, length: length === null ? undefined : Number(length), attempts: Number(attempts) }
}

function parametersOf(found: readonly Found[]): [Param, Param, Param, Param] {
  return [
    found.map(({ stage }) => stage),
    found.map(({ sealed }) => sealed?.locator ?? null),
    found.map(({ sealed }) => (sealed ? digestOf(sealed.key) : null)),
    found.map(({ sealed }) => sealed?.length ?? null)
  ]
}

async function record(at: Connection, records: readonly DropRecord[]): Promise<void> {
  const gone = records.filter(({ retryAfterMs }) => retryAfterMs === undefined)
  const failed = records.filter(({ retryAfterMs }) => retryAfterMs !== undefined)
  if (gone.length > 0)
    await at.run(
      DROPPED,
      gone.map(({ what }) => what)
    )
  if (failed.length > 0) {
    const delays = failed.map(({ retryAfterMs }) => retryAfterMs ?? 0)
    await at.run(
      PUT_OFF,
      failed.map(({ what }) => what),
      delays
    )
  }
}
