/**
 * What lies under a locator: `read`, `length`.
 *
 * A body is read in windows, each by one statement of its own on a borrowed session, which looks up the object by its stage,
 * fetches its bytes and asks for the claim, all in one snapshot. So nothing is held open between two pulls, a consumer may be as
 * slow as it likes, and an object that was dropped meanwhile is `gone` and never another one with the same number.
 *
 * Bytes come in binary form, three to five times faster than as text, in pieces that the server's processor keeps close. While
 * the consumer has one window the next ones are on their way.
 */
import { type Call, EngineFault, type Locator, WINDOW_LENGTH } from '@alkblobs/core/engine'
import { int8 } from '@alkblobs/postgres-session'
import { ask, askBinary, type Medium } from '../medium.js'
import { parseLocator } from '../names.js'

/** The server's limit of an object: 2^31 - 1 pages of 2 KiB. Beyond it a position is refused, not merely past the end. */
const OBJECT_LENGTH_MAX = (2 ** 31 - 1) * 2_048

/** Windows that are read ahead, one after the other, while the consumer has one. */
const WINDOWS_AHEAD = 2

/**
 * The server copies an object's pages twice on their way, and pieces of this size stay in the cache of its processor: 0.8 ms of it a
 * MiB, where pieces of 256 KiB take 1.2 and those of 1 MiB 1.9.
 */
const PIECE_LENGTH = 128 * 1024

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
  // One after the other, so that a reader never takes more than one session, however many there are left.
  let last: Promise<unknown> = Promise.resolve()
  const ask = (at: number) => {
    const length = Math.min(WINDOW_LENGTH, range.end - at)
    const asked = last.then(() => window(medium, stage, at, length, within(call, patienceMs)))
    last = heard(asked)
    return asked
  }
  const coming: Promise<Buffer>[] = []
  let asked = range.start
  for (let at = range.start; at < range.end; at += WINDOW_LENGTH) {
    // Nothing is asked ahead before the first window has come: most ranges are no longer.
    const ahead = at === range.start ? 0 : WINDOWS_AHEAD
    for (; asked < range.end && asked <= at + ahead * WINDOW_LENGTH; asked += WINDOW_LENGTH) coming.push(ask(asked))
    const bytes = await (coming.shift() as Promise<Buffer>)
    // A chunk is its consumer's once it is yielded, and one that a stream has passed on has no length any more.
    const isLast = bytes.length < Math.min(WINDOW_LENGTH, range.end - at)
    // In this turn the next one leaves; else the server would wait until the consumer has hashed this one.
    if (coming.length > 0) await new Promise(setImmediate)
    if (bytes.length > 0) yield bytes
    // The medium holds no more; what that means is for the reader of the whole to judge.
    if (isLast) return
  }
}

function within(call: Call, patienceMs: number): Call {
  return { ...call, deadlineMs: performance.now() + patienceMs }
}

/** A window that is on its way when its consumer leaves fails unheard. */
function heard<T>(promise: Promise<T>): Promise<T> {
  promise.catch(() => undefined)
  return promise
}

async function window(medium: Medium, stage: string, start: number, length: number, call: Call): Promise<Buffer> {
  // In memory of its own, which its consumer may pass on; bytes are copied into it as they come.
  const whole = Buffer.allocUnsafeSlow(length)
  let filled = 0
  const room = () => {
    filled = 0
    return (column: number, size: number) => {
      if (column !== PIECE) return Buffer.allocUnsafe(size)
      if (size > length - filled) throw new EngineFault('corrupt', 'a window is longer than was asked for')
      filled += size
      return whole.subarray(filled - size, filled)
    }
  }
  const params = [Buffer.from(stage.replaceAll('-', ''), 'hex'), int8(start), int8(start + length)]
  const rows = await askBinary(medium, call, { text: windowStatement(medium), params, room })
  if (rows.some(([bytes]) => bytes === null)) throw new EngineFault('gone', 'nothing lies under the locator')
  return filled === length ? whole : Buffer.from(whole.subarray(0, filled))
}

/** The column of the statement below that has the bytes. */
const PIECE = 1

function windowStatement(medium: Medium): string {
  const piece = `lo_get(e.loid, least(p.at, ${OBJECT_LENGTH_MAX}), least(${PIECE_LENGTH}, $3::bigint - p.at)::integer)`
  return `SELECT ${found(medium, piece, '$1')},
    generate_series($2::bigint, $3::bigint - 1, ${PIECE_LENGTH}) AS p (at) ORDER BY p.at`
}

/** The bytes really held, asked of the object itself; `undefined` if there is none while the claim is there. */
export async function bodyLength(medium: Medium, locator: Locator, call: Call): Promise<number | undefined> {
  const [row] = await ask<[string | null]>(medium, call, `SELECT ${found(medium, `${LENGTH}::text`, '$1')}`, [
    parseLocator(locator)
  ])
  const length = row?.[0]
  return typeof length === 'string' ? Number(length) : undefined
}

/** Opens the object for reading and seeks its end, which looks at its last page alone. */
const LENGTH = 'lo_lseek64(lo_open(e.loid, 262144), 0, 2)'

/** The claim's pool id, and a value of the object of a stage: NULL without a row, without an object, or once it is being dropped. */
function found({ tables }: Medium, value: string, stage: string): string {
  return `c.pool_id, CASE WHEN m.oid IS NOT NULL AND NOT e.dropping THEN ${value} END
    FROM ${tables.claim} c
    LEFT JOIN ${tables.entries} e ON e.stage = ${stage}::uuid
    LEFT JOIN pg_largeobject_metadata m ON m.oid = e.loid`
}
