/**
 * Values on their way to the server and back, both in the server's text format, because the driver knows no other.
 *
 * Everything is turned into text here and now: the driver does it in a later tick, when a buffer may have other bytes, and
 * cuts typed arrays of wider elements to a byte for each.
 */
import { unreadable } from './failure.js'

export type Scalar = string | number | bigint | boolean | Uint8Array | null
/** A list becomes an array of the server's; say which with a cast: `$1::bytea[]`. */
export type Param = Scalar | readonly Scalar[]
/** `bigint` for bigint, `number` for the smaller numbers, floats and oids, Buffer for bytea; everything else is its text. */
export type Value = string | number | bigint | boolean | Buffer | null

const BOOL = 16
const BYTEA = 17
const INT8 = 20
const INT2 = 21
const INT4 = 23
const OID = 26
const FLOAT4 = 700
const FLOAT8 = 701
const INTEGERS: ReadonlySet<number> = new Set([INT2, INT4, INT8, OID])
const NUMBERS: ReadonlySet<number> = new Set([INT2, INT4, OID, FLOAT4, FLOAT8])

export interface Column {
  readonly type: number
}

/** What the driver would do to texts of these types by itself, undone. */
export const UNTOUCHED = {
  text: {
    to: BYTEA,
    from: [BOOL, BYTEA, 114, 3802, 1082, 1114, 1184],
    serialize: (value: string) => value,
    parse: (value: string) => value
  }
}

/** The driver's most for one statement. */
const PARAMS_MAX = 65_533

/** @throws RangeError for too many, TypeError for what is no value of these kinds; the driver would say so much later. */
export function encodeAll(params: readonly Param[]): (string | null)[] {
  if (params.length > PARAMS_MAX) throw new RangeError(`more than ${PARAMS_MAX} parameters`)
  return params.map(encode)
}

function encode(param: Param): string | null {
  if (param === null || typeof param === 'string') return param
  if (Array.isArray(param)) return `{${param.map(element).join(',')}}`
  if (param instanceof Uint8Array) return hexOf(param)
  if (typeof param === 'number' || typeof param === 'bigint') return `${param}`
  if (typeof param === 'boolean') return param ? 't' : 'f'
  throw new TypeError(`a parameter of type ${typeof param}`)
}

function element(value: Scalar): string {
  if (value === null) return 'NULL'
  // A backslash starts an escape within an array.
  if (value instanceof Uint8Array) return `"\\${hexOf(value)}"`
  if (typeof value === 'string') return `"${value.replace(/["\\]/g, '\\$&')}"`
  const text = encode(value)
  return text === null ? 'NULL' : text
}

function hexOf(bytes: Uint8Array): string {
  const { buffer, byteOffset, byteLength } = bytes
  return `\\x${Buffer.from(buffer, byteOffset, byteLength).toString('hex')}`
}

/** A row as it came, each column as the bytes of its text. @throws EngineFault `transient` for a number that is none. */
export function decodeRow(row: readonly (Buffer | null)[], columns: readonly Column[]): Value[] {
  return row.map((bytes, index) => (bytes === null ? null : decode(bytes, columns[index]?.type ?? 0)))
}

function decode(bytes: Buffer, type: number): Value {
  // Hexadecimal digits are plain bytes, and `latin1` is the fastest way to see them as such.
  if (type === BYTEA) return Buffer.from(bytes.toString('latin1', 2), 'hex')
  if (type === BOOL) return bytes[0] === 't'.charCodeAt(0)
  const text = bytes.toString('utf8')
  if (INTEGERS.has(type) && !/^-?\d+$/.test(text)) throw unreadable()
  if (type === INT8) return BigInt(text)
  return NUMBERS.has(type) ? Number(text) : text
}
