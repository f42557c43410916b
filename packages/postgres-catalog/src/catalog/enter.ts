/**
 * The second step of a publication: entries are made, or, where the key has one, locked. Items come in the order of their keys and
 * are made in it.
 *
 * Bodies go one of two ways. As one hexadecimal text in the parameters of the statement that looks as well: one message, and a key
 * that somebody else makes meanwhile is found. Or, where there are many bytes, in a binary COPY behind a look: a third of the
 * processor time, but a key that appears between the two breaks the transaction (23505), which then runs again the first way.
 */
import { digestHexOf, digestOf, type Locator, type Publication } from '@alkblobs/core/engine'
import { copyRows, type Field, int8, type Param } from '@alkblobs/postgres-session'
import type { Connection } from '../connection.js'

/** From here on a COPY, which is a message more, is sooner done. */
const COPIED_LENGTH_MIN = 48 * 1024

export interface Way {
  /** Whether bytes go by COPY. */
  readonly isCopied: boolean
  /** Whether locked entries are waited for; else they are left out. */
  readonly waits: boolean
}

/** Whether a COPY is worth its while. */
export function areHeavy(items: readonly Publication[]): boolean {
  const length = items.reduce((sum, { bytes }) => sum + (bytes.kind === 'inline' ? bytes.body.byteLength : 0), 0)
  return length >= COPIED_LENGTH_MIN
}

type Wait = '' | 'SKIP LOCKED'
const FOUND = (wait: Wait) => `
  found AS MATERIALIZED (
    SELECT key, length, octet_length(body) AS held, locator FROM $.entries
    WHERE key = ANY ($1::bytea[]) ORDER BY key FOR KEY SHARE ${wait}
  )`
const IS_THERE = '(SELECT true FROM $.entries e WHERE e.key = i.key) IS NOT NULL'
const PROTOCOL = '(SELECT protocol FROM $.meta)'
/**
 * One row for each item: whether it was made, whether its entry is locked, whether there is one, the entry, the stamp. All bodies
 * come as one value, of which each item has a part: the server takes longer to read an array of them than to store it.
 */
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
const look = (wait: Wait) => `
  WITH ${FOUND(wait)}
  SELECT encode(i.key, 'hex'), false, f.key IS NOT NULL, ${IS_THERE}, f.length, f.held, f.locator, ${PROTOCOL}
  FROM unnest($1::bytea[]) AS i (key) LEFT JOIN found f ON f.key = i.key`
const ENTER = enter('SKIP LOCKED')
const ENTER_AND_WAIT = enter('')
const LOOK = look('SKIP LOCKED')
const LOOK_AND_WAIT = look('')
const COPY = 'COPY $.entries (key, length, body, locator) FROM STDIN (FORMAT binary)'

export type EnteredRow = [
  hex: string,
  made: boolean,
  locked: boolean,
  there: boolean,
  length: bigint | null,
  held: number | null,
  locator: Locator | null,
  protocol: number | null
]

export interface Entering {
  readonly rows: readonly EnteredRow[]
  /** When the server has taken what was made. What is asked before that travels along, and fails if this does. */
  readonly made: Promise<void>
}

/** Makes the entries of these items, which come in the order of their keys, or locks those that are there. */
export async function enterAll(at: Connection, items: readonly Publication[], way: Way): Promise<Entering> {
  if (way.isCopied) return enterByCopy(at, items, way.waits ? LOOK_AND_WAIT : LOOK)
  const rows = await at.rows<EnteredRow>(way.waits ? ENTER_AND_WAIT : ENTER, ...parametersOf(items))
  return { rows, made: Promise.resolve() }
}

/** The copy is asked for together with the look, whose answer it then waits for; so both take one message each way. */
async function enterByCopy(at: Connection, items: readonly Publication[], look: string): Promise<Entering> {
  const keys = items.map(({ key }) => digestOf(key))
  const looked = at.rows<EnteredRow>(look, keys)
  const absent = looked.then(rows => absentAmong(items, rows))
  // If the look fails, that is what is thrown below.
  absent.catch(() => undefined)
  let sent = (): void => undefined
  const isSent = new Promise<void>(resolve => {
    sent = resolve
  })
  const made = at.copyIn(COPY, copyRows(fieldsOfAll(absent)), sent)
  const rows = await looked
  await Promise.race([isSent, made])
  const hexes = new Set((await absent).map(({ key }) => digestHexOf(key)))
  return { rows: rows.map(row => (hexes.has(row[0]) ? asMade(row) : row)), made }
}

function absentAmong(items: readonly Publication[], rows: readonly EnteredRow[]): Publication[] {
  const hexes = new Set(rows.filter(([, , , there]) => !there).map(([hex]) => hex))
  return items.filter(({ key, bytes }) => bytes.kind !== 'none' && hexes.has(digestHexOf(key)))
}

async function* fieldsOfAll(items: Promise<readonly Publication[]>): AsyncGenerator<readonly Field[]> {
  for (const item of await items) yield fieldsOf(item)
}

function asMade([hex, , ...rest]: EnteredRow): EnteredRow {
  return [hex, true, ...rest]
}

function fieldsOf({ key, length, bytes }: Publication): readonly Field[] {
  const body = bytes.kind === 'inline' ? bytes.body : null
  const locator = bytes.kind === 'staged' ? Buffer.from(bytes.locator) : null
  return [digestOf(key), int8(length), body, locator]
}

function parametersOf(items: readonly Publication[]): Param[] {
  const starts: (number | null)[] = []
  const lengths: (number | null)[] = []
  const bodies: string[] = []
  let start = 1
  for (const { bytes } of items) {
    const body = bytes.kind === 'inline' ? bytes.body : undefined
    starts.push(body === undefined ? null : start)
    lengths.push(body === undefined ? null : body.byteLength)
    if (body === undefined) continue
    start += body.byteLength
    bodies.push(Buffer.from(body.buffer, body.byteOffset, body.byteLength).toString('hex'))
  }
  return [
    items.map(({ key }) => digestOf(key)),
    items.map(({ length }) => length),
    `\\x${bodies.join('')}`,
    items.map(({ bytes }) => (bytes.kind === 'staged' ? bytes.locator : null)),
    starts,
    lengths
  ]
}
