/** Entries as they lie in the table: finding, listing, counting. */
import {
  type BlobKey,
  type Catalog,
  digestHexOf,
  digestOf,
  type Entry,
  type Locator,
  type Place
} from '@alkblobs/core/engine'
import type { Value } from '@alkblobs/postgres-session'
import type { Pool } from '../pool.js'

/** The length of a body lies in its row's head, so this says what is really held without reading bodies. */
const FIND = `
  SELECT encode(key, 'hex'), length, octet_length(body), locator FROM $.entries WHERE key = ANY ($1::bytea[])`
const LIST = `
  SELECT encode(key, 'hex'), length, locator FROM $.entries WHERE key > $1::bytea ORDER BY key LIMIT $2::bigint`
const USAGE = `
  SELECT count(*) FILTER (WHERE locator IS NULL), coalesce(sum(length) FILTER (WHERE locator IS NULL), 0),
         count(locator), coalesce(sum(length) FILTER (WHERE locator IS NOT NULL), 0)
  FROM $.entries`
/** Counting reads every row, and the table itself is the fastest way through it. */
const IN_ORDER_OF_THE_DISK = 'SET LOCAL enable_seqscan = on'
const COUNTS = `
  SELECT (SELECT count(*) FROM $.gc_pins WHERE expires_at > clock_timestamp()),
         (SELECT count(*) FROM $.gc_window WHERE mark = ''),
         (SELECT count(*) FROM $.stages), (SELECT count(*) FROM $.trash)`

export const EMPTY = Buffer.alloc(0)
const NOTHING = { entries: 0, bytes: 0 }

export function entriesOf(pool: Pool): Pick<Catalog, 'find' | 'list' | 'usage'> {
  return {
    find: (keys, call) =>
      pool.ask<(Entry | undefined)[]>(
        call,
        () => keys.map(() => undefined),
        async at => {
          const rows = await at.rows<FoundRow>(FIND, keys.map(digestOf))
          const found = new Map(rows.map(row => [row[0], row]))
          return keys.map(key => {
            const row = found.get(digestHexOf(key))
            return row && entryOf(key, row[1], row[2], row[3])
          })
        }
      ),
    list: (after, limit, call) =>
      pool.ask<Entry[]>(
        call,
        () => [],
        async at => {
          const from = after === undefined ? EMPTY : digestOf(after)
          const rows = await at.rows<[string, bigint, Locator | null]>(LIST, from, limit)
          // The place of a listed inline entry says the recorded length: its body is not looked at.
          return rows.map(([hex, length, locator]) => entryOf(pool.keyOf(hex), length, length, locator))
        }
      ),
    usage: call =>
      pool.write(
        call,
        () => ({ kv: NOTHING, large: NOTHING, pins: 0, window: 0, stages: 0, trash: 0 }),
        async at => {
          await at.run(IN_ORDER_OF_THE_DISK)
          const [entries, bytes, largeEntries, largeBytes] = numbers(await at.row(USAGE))
          const [pins, window, stages, trash] = numbers(await at.row(COUNTS))
          return {
            kv: { entries, bytes },
            large: { entries: largeEntries, bytes: largeBytes },
            pins,
            window,
            stages,
            trash
          }
        }
      )
  }
}

type FoundRow = [hex: string, length: bigint, held: number | null, locator: Locator | null]

export function entryOf(
  key: BlobKey,
  length: number | bigint,
  held: number | bigint | null,
  locator: Locator | null
): Entry {
  return { key, length: Number(length), place: placeOf(locator, Number(held)) }
}

export function isSamePlace(one: Place, other: Place): boolean {
  if (one.tier === 'kv') return other.tier === 'kv' && one.length === other.length
  return other.tier === 'large' && one.locator === other.locator
}

function placeOf(locator: Locator | null, held: number): Place {
  return locator === null ? { tier: 'kv', length: held } : { tier: 'large', locator }
}

function numbers(row: readonly Value[] | undefined): [number, number, number, number] {
  return (row ?? [0, 0, 0, 0]).map(Number) as [number, number, number, number]
}
