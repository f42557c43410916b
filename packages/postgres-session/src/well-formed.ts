/** Whether the bodies of messages are what they should be, for a reader that does not look where they end. */
import { fieldsOf } from './failure.js'

/** Behind the name of a column: its table (4 bytes), number (2), type (4), length (2), modifier (4) and format (2). */
const COLUMN_LENGTH = 18

/** An `E` that says what went wrong. */
export function isErrorResponse(body: Buffer): boolean {
  return fieldsOf(body) !== undefined
}

/** A `T`: int16 number of columns; each a name that ends in a zero, and the rest. */
export function isDescription(body: Buffer): boolean {
  if (body.length < 2) return false
  let at = 2
  for (let columns = body.readUInt16BE(0); columns > 0; columns--) {
    const end = body.indexOf(0, at)
    if (end < 0) return false
    at = end + 1 + COLUMN_LENGTH
  }
  return at === body.length
}

/** A `t`: int16 number of parameters, each an int32. */
export function isTypes(body: Buffer): boolean {
  return body.length >= 2 && body.length === 2 + 4 * body.readUInt16BE(0)
}

/**
 * How many values a `D` has whose body lies there: int16 how many, each int32 length (-1 is NULL) and its bytes. `undefined` if it is none.
 */
export function valuesIn(bytes: Buffer, begin: number, end: number): number | undefined {
  if (begin + 2 > end) return undefined
  const values = bytes.readUInt16BE(begin)
  let at = begin + 2
  for (let value = 0; value < values; value++) {
    if (at + 4 > end) return undefined
    const length = bytes.readInt32BE(at)
    if (length < -1) return undefined
    at += 4 + Math.max(length, 0)
  }
  return at === end ? values : undefined
}
