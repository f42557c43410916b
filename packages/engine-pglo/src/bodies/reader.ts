/**
 * What lies under a locator: `read`, `length`.
 *
 * A body is read in windows, each by one statement of its own on a borrowed session, which looks up the object by its stage,
 * fetches its bytes and asks for the claim, all in one snapshot. So nothing is held open between two pulls, a consumer may be as
 * slow as it likes, and an object that was dropped meanwhile is `gone` and never another one with the same number.
 *
 * Bytes come as base64 text: 1.5 times faster than the driver's hexadecimal, and a third shorter (`README.md` has the figures).
 */
import { type Call, EngineFault, type Locator, WINDOW_LENGTH } from '@alkblobs/core/engine'
import { ask, type Medium } from '../medium.js'
import { parseLocator } from '../names.js'

/** The server's limit of an object: 2^31 - 1 pages of 2 KiB. Beyond it a position is refused, not merely past the end. */
const OBJECT_LENGTH_MAX = (2 ** 31 - 1) * 2_048

/** Longest one window may take, in milliseconds; a server that takes longer for 1 MiB is not there. */
const WINDOW_MS = 30_000

export interface Range {
  readonly start: number
  readonly end: number
}

/** Borrows nothing before the first pull, and nothing between two; so there is nothing to close however the loop ends. */
export async function* readBody(
  medium: Medium,
  locator: Locator,
  range: Range,
  call: Call
): AsyncGenerator<Uint8Array> {
  const stage = parseLocator(locator)
  // The consumer may take its time between two pulls, so each window has what the call had at its beginning, within reason: a
  // statement that waits for ever on a dead line would keep its session from everybody else.
  const patienceMs = Math.min(call.deadlineMs - performance.now(), WINDOW_MS)
  for (let at = range.start; at < range.end; ) {
    const length = Math.min(WINDOW_LENGTH, range.end - at)
    const bytes = await window(medium, [stage, Math.min(at, OBJECT_LENGTH_MAX), length], {
      ...call,
      deadlineMs: performance.now() + patienceMs
    })
    // A chunk is its consumer's once it is yielded, and one that a stream has passed on has no length any more.
    const isLast = bytes.length < length
    if (bytes.length > 0) yield bytes
    // The medium holds no more; what that means is for the reader of the whole to judge.
    if (isLast) return
    at += length
  }
}

async function window(
  medium: Medium,
  params: [stage: string, at: number, length: number],
  call: Call
): Promise<Buffer> {
  const [row] = await ask<[string | null]>(
    medium,
    call,
    `SELECT ${found(medium, `encode(lo_get(e.loid, $2::bigint, $3::integer), 'base64')`)}`,
    params
  )
  const text = row?.[0]
  if (typeof text !== 'string') throw new EngineFault('gone', 'nothing lies under the locator')
  const bytes = Buffer.from(text, 'base64')
  // Short strings decode into memory that other buffers share; a chunk is its consumer's alone.
  return bytes.buffer.byteLength === bytes.length ? bytes : Buffer.from(Uint8Array.from(bytes).buffer)
}

/** The bytes really held, asked of the object itself; `undefined` if there is none while the claim is there. */
export async function bodyLength(medium: Medium, locator: Locator, call: Call): Promise<number | undefined> {
  const [row] = await ask<[string | null]>(medium, call, `SELECT ${found(medium, `${LENGTH}::text`)}`, [
    parseLocator(locator)
  ])
  const length = row?.[0]
  return typeof length === 'string' ? Number(length) : undefined
}

/** Opens the object for reading and seeks its end, which looks at its last page alone. */
const LENGTH = 'lo_lseek64(lo_open(e.loid, 262144), 0, 2)'

/** The claim's pool id, and a value of the object of stage `$1`: NULL without a row, without an object, or once it is being dropped. */
function found({ tables }: Medium, value: string): string {
  return `c.pool_id, CASE WHEN m.oid IS NOT NULL AND NOT e.dropping THEN ${value} END
    FROM ${tables.claim} c
    LEFT JOIN ${tables.entries} e ON e.stage = $1::uuid
    LEFT JOIN pg_largeobject_metadata m ON m.oid = e.loid`
}
