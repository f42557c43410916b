/** Entries as they lie in the file: finding, reading, listing, counting. */
import { setImmediate as turn } from 'node:timers/promises'
import {
  type BlobKey,
  type Catalog,
  digestOf,
  type Entry,
  type Locator,
  type Place,
  type TierUsage
} from '@alkblobs/core/engine'
import type { Connection } from '../connection.js'
import type { Pool } from '../pool.js'

/** `length()` of a body reads the head of its row alone, so this says what is really held without reading bodies. */
const FIND =
  'SELECT e.length, e.locator, e.id, length(b.body) FROM entries e LEFT JOIN bodies b ON b.id = e.id WHERE e.key = ?'
const READ = 'SELECT e.length, e.locator, b.body FROM entries e LEFT JOIN bodies b ON b.id = e.id WHERE e.key = ?'
const LIST = 'SELECT lower(hex(key)), length, locator FROM entries WHERE key > ? ORDER BY key LIMIT ?'
const USAGE = `
  SELECT lower(hex(max(key))), count(*), count(locator), sum(length), sum(length) FILTER (WHERE locator IS NOT NULL)
  FROM (SELECT key, length, locator FROM entries WHERE key > ? ORDER BY key LIMIT ?)`
const COUNTS = `
  SELECT (SELECT count(*) FROM gc_pins WHERE expires_at > ?), (SELECT count(*) FROM gc_window WHERE mark = ''),
         (SELECT count(*) FROM stages), (SELECT count(*) FROM trash)`

/** Entries counted at a time: about 5 ms. */
const USAGE_PAGE = 50_000
const EMPTY = new Uint8Array(0)

/** An entry and the number of its inline body, if it has one. */
export interface Row {
  readonly entry: Entry
  readonly body: number | null
}

export function findRow(at: Connection, key: BlobKey, digest: Uint8Array): Row | undefined {
  const row = at.row<[number, Locator | null, number | null, number | null]>(FIND, digest)
  if (row === undefined) return undefined
  const [length, locator, body, held] = row
  return { entry: { key, length, place: placeOf(locator, held ?? 0) }, body }
}

export function isSamePlace(one: Place, other: Place): boolean {
  if (one.tier === 'kv') return other.tier === 'kv' && one.length === other.length
  return other.tier === 'large' && one.locator === other.locator
}

export function entriesOf(pool: Pool): Pick<Catalog, 'find' | 'read' | 'readNow' | 'readTogether' | 'list' | 'usage'> {
  return {
    find: (keys, call) =>
      pool.read(call, keys.map(() => undefined) as (Entry | undefined)[], at =>
        keys.map(key => findRow(at, key, digestOf(key))?.entry)
      ),
    read: (key, call) => pool.read(call, undefined, at => readOne(at, key)),
    readNow(key) {
      const at = pool.medium.attachToLook()
      return at && readOne(at, key)
    },
    readTogether(reads) {
      const at = pool.medium.attachToLook()
      // The file is locked once for all: a read of 16 KiB takes 6.4 microseconds by itself, 4.9 as one of sixteen.
      at?.exec('BEGIN')
      try {
        reads()
      } finally {
        at?.rollback()
      }
    },
    list: (after, limit, call) => pool.read(call, [], at => listPage(pool, at, after, limit)),
    async usage(call) {
      const [kv, large] = [
        { entries: 0, bytes: 0 },
        { entries: 0, bytes: 0 }
      ]
      for (let after: Uint8Array | undefined = EMPTY; after !== undefined; ) {
        const from: Uint8Array = after
        after = await pool.read(call, undefined, at => countPage(at, from, kv, large))
        if (after !== undefined) await turn()
      }
      const counts = await pool.read(call, undefined, at =>
        at.row<[number, number, number, number]>(COUNTS, Date.now())
      )
      const [pins, window, stages, trash] = counts ?? [0, 0, 0, 0]
      return { kv, large, pins, window, stages, trash }
    }
  }
}

function placeOf(locator: Locator | null, held: number): Place {
  return locator === null ? { tier: 'kv', length: held } : { tier: 'large', locator }
}

/** A driver's buffer is a fresh copy, so it is the caller's. An entry whose body is missing holds no bytes: broken, not absent. */
function readOne(at: Connection, key: BlobKey): { entry: Entry; body?: Uint8Array } | undefined {
  const row = at.row<[number, Locator | null, Uint8Array | null]>(READ, digestOf(key))
  if (row === undefined) return undefined
  const [length, locator, body] = row
  if (locator !== null) return { entry: { key, length, place: placeOf(locator, 0) } }
  const held = body ?? EMPTY
  return { entry: { key, length, place: placeOf(null, held.byteLength) }, body: held }
}

/** The place of a listed inline entry says the recorded length: its body is not looked at. */
function listPage(pool: Pool, at: Connection, after: BlobKey | undefined, limit: number): Entry[] {
  const from = after === undefined ? EMPTY : digestOf(after)
  const rows = at.rows<[string, number, Locator | null]>(LIST, from, limit)
  return rows.map(([hex, length, locator]) => ({ key: pool.keyOf(hex), length, place: placeOf(locator, length) }))
}

/** Adds a page to the sums; answers where the next one starts. */
function countPage(
  at: Connection,
  after: Uint8Array,
  kv: Writable<TierUsage>,
  large: Writable<TierUsage>
): Uint8Array | undefined {
  const row = at.row<[string, number, number, number | null, number | null]>(USAGE, after, USAGE_PAGE)
  const [last, entries, largeEntries, bytes, largeBytes] = row ?? ['', 0, 0, 0, 0]
  kv.entries += entries - largeEntries
  kv.bytes += (bytes ?? 0) - (largeBytes ?? 0)
  large.entries += largeEntries
  large.bytes += largeBytes ?? 0
  return entries < USAGE_PAGE ? undefined : Buffer.from(last, 'hex')
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }
