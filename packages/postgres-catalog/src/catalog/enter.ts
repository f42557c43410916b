/**
 * The second step of a publication: entries are made, or, where the key has one, locked. Items come in the order of their keys and
 * are made in it. All bodies are one value, of which each item has a part: the server takes longer to read an array of them than to
 * store it.
 */
import { digestOf, type Locator, type Publication } from '@alkblobs/core/engine'
import {
  type Binary,
  byteaArray,
  int4Array,
  int8Array,
  type Param,
  type Row,
  type Statement
} from '@alkblobs/postgres-session'
import type { Connection } from '../connection.js'

type Wait = '' | 'SKIP LOCKED'
const FOUND = (wait: Wait) => `
  found AS MATERIALIZED (
    SELECT key, length, octet_length(body) AS held, locator FROM $.entries
    WHERE key = ANY ($1::bytea[]) ORDER BY key FOR KEY SHARE ${wait}
  )`
const IS_THERE = '(SELECT true FROM $.entries e WHERE e.key = i.key) IS NOT NULL'
const PROTOCOL = '(SELECT protocol FROM $.meta)'
/** One row for each item: whether it was made, whether its entry is locked, whether there is one, the entry, the stamp. */
const enter = (wait: Wait) => `
  WITH made AS (
    INSERT INTO $.entries (key, length, body, locator)
    SELECT key, length, CASE WHEN locator IS NULL THEN substring($3::bytea FROM start FOR held) END, locator
    FROM unnest($1::bytea[], $2::bigint[], $4::text[], $5::integer[], $6::integer[])
      AS i (key, length, locator, start, held)
    WHERE start IS NOT NULL OR locator IS NOT NULL
    ON CONFLICT (key) DO NOTHING RETURNING key
  ), ${FOUND(wait)}
  SELECT encode(i.key, 'hex'), m.key IS NOT NULL, f.key IS NOT NULL,
         ${IS_THERE}, f.length, f.held, f.locator, ${PROTOCOL}
  FROM unnest($1::bytea[]) AS i (key) LEFT JOIN made m ON m.key = i.key LEFT JOIN found f ON f.key = i.key`
/** The same for items without stages, in binary form, with the number of each in place of its key. */
const enterAtHand = (wait: Wait) => `
  WITH made AS (
    INSERT INTO $.entries (key, length, body)
    SELECT key, length, substring($3::bytea FROM start FOR held)
    FROM unnest($1::bytea[], $2::bigint[], $4::integer[], $5::integer[]) AS i (key, length, start, held)
    WHERE start IS NOT NULL
    ON CONFLICT (key) DO NOTHING RETURNING key
  ), ${FOUND(wait)}
  SELECT (i.n - 1)::integer, m.key IS NOT NULL, f.key IS NOT NULL, ${IS_THERE}, f.length, f.held, f.locator, ${PROTOCOL}
  FROM unnest($1::bytea[]) WITH ORDINALITY AS i (key, n)
  LEFT JOIN made m ON m.key = i.key LEFT JOIN found f ON f.key = i.key`
const ENTER = enter('SKIP LOCKED')
const ENTER_AND_WAIT = enter('')
const AT_HAND = enterAtHand('SKIP LOCKED')
const AT_HAND_AND_WAIT = enterAtHand('')

/** What became of an item: whether its entry was made, is locked, is there, what it is; and the stamp. */
export interface Entered {
  readonly made: boolean
  readonly locked: boolean
  readonly there: boolean
  readonly length: bigint | null
  readonly held: number | null
  readonly locator: Locator | null
  readonly protocol: number | null
}

/** Makes the entries of these items, which come in the order of their keys, or locks those that are there; or, if `waits`, waits for them. */
export async function enterAll(
  at: Connection,
  items: readonly Publication[],
  waits: boolean
): Promise<[hex: string, entered: Entered][]> {
  const rows = await at.rows<TextRow>(waits ? ENTER_AND_WAIT : ENTER, ...parametersOf(items))
  return rows.map(([hex, made, locked, there, length, held, locator, protocol]) => [
    hex,
    { made, locked, there, length, held, locator, protocol }
  ])
}

type TextRow = [string, boolean, boolean, boolean, bigint | null, number | null, Locator | null, number | null]

/** The same for items without stages, as a statement; its rows are read by `enteredOf`. */
export function entering(items: readonly Publication[], waits: boolean): Statement {
  const { starts, lengths, bodies } = partsOf(items)
  const params: Binary[] = [
    byteaArray(items.map(({ key }) => digestOf(key))),
    int8Array(items.map(({ length }) => length)),
    bodies,
    int4Array(starts),
    int4Array(lengths)
  ]
  return { text: waits ? AT_HAND_AND_WAIT : AT_HAND, params }
}

/** The number of the item, and what became of it. */
export function enteredOf([n, made, locked, there, length, held, locator, protocol]: Row): [number, Entered] {
  const is = (value: Buffer | null | undefined) => value?.[0] === 1
  const entered = {
    made: is(made),
    locked: is(locked),
    there: is(there),
    length: length?.readBigInt64BE(0) ?? null,
    held: held?.readInt32BE(0) ?? null,
    locator: (locator?.toString() ?? null) as Locator | null,
    protocol: protocol?.readInt32BE(0) ?? null
  }
  return [(n as Buffer).readInt32BE(0), entered]
}

function parametersOf(items: readonly Publication[]): Param[] {
  const { starts, lengths, bodies } = partsOf(items)
  return [
    items.map(({ key }) => digestOf(key)),
    items.map(({ length }) => length),
    Buffer.concat(bodies),
    items.map(({ bytes }) => (bytes.kind === 'staged' ? bytes.locator : null)),
    starts,
    lengths
  ]
}

/** Where the body of each item lies in all of them. Positions count from 1. */
function partsOf(items: readonly Publication[]) {
  const starts: (number | null)[] = []
  const lengths: (number | null)[] = []
  const bodies: Uint8Array[] = []
  let start = 1
  for (const { bytes } of items) {
    const body = bytes.kind === 'inline' ? bytes.body : undefined
    starts.push(body === undefined ? null : start)
    lengths.push(body === undefined ? null : body.byteLength)
    if (body === undefined) continue
    start += body.byteLength
    bodies.push(body)
  }
  return { starts, lengths, bodies }
}
