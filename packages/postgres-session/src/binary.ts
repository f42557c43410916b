/** Parameters in the binary form of their types. Numbers are big-endian, text is UTF-8. */
import type { Binary } from './messages.js'

const BYTEA = 17
const INT8 = 20
const INT4 = 23
const TEXT = 25
const FLOAT8 = 701

/** For a parameter of type `integer`. */
export function int4(value: number): Buffer {
  const field = Buffer.allocUnsafe(4)
  field.writeInt32BE(value)
  return field
}

/** For one of type `oid`. */
export function oid(value: number): Buffer {
  const field = Buffer.allocUnsafe(4)
  field.writeUInt32BE(value)
  return field
}

/** For one of type `bigint`. */
export function int8(value: number | bigint): Buffer {
  const field = Buffer.allocUnsafe(8)
  field.writeBigInt64BE(BigInt(value))
  return field
}

function float8(value: number): Buffer {
  const field = Buffer.allocUnsafe(8)
  field.writeDoubleBE(value)
  return field
}

/** `bytea[]` */
export const byteaArray = (list: readonly Uint8Array[]) => arrayOf(BYTEA, list)
/** `text[]` */
export const textArray = (list: readonly string[]) =>
  arrayOf(
    TEXT,
    list.map(text => Buffer.from(text))
  )
/** `integer[]` */
export const int4Array = (list: readonly (number | null)[]) =>
  arrayOf(
    INT4,
    list.map(value => (value === null ? null : int4(value)))
  )
/** `bigint[]` */
export const int8Array = (list: readonly (number | bigint)[]) => arrayOf(INT8, list.map(int8))
/** `float8[]` */
export const float8Array = (list: readonly number[]) => arrayOf(FLOAT8, list.map(float8))

/**
 * int32 number of dimensions (1, or 0 where it is empty), int32 whether there are NULLs, the elements' type, int32 count, int32 first
 * index; each element int32 length (-1 is NULL), then its bytes.
 */
function arrayOf(type: number, list: readonly (Uint8Array | null)[]): Binary {
  const head = Buffer.alloc(list.length === 0 ? 12 : 20)
  head.writeInt32BE(list.length === 0 ? 0 : 1, 0)
  head.writeInt32BE(list.includes(null) ? 1 : 0, 4)
  head.writeUInt32BE(type, 8)
  if (list.length > 0) {
    head.writeInt32BE(list.length, 12)
    head.writeInt32BE(1, 16)
  }
  const array = Buffer.allocUnsafe(list.reduce((sum, each) => sum + 4 + (each?.length ?? 0), head.length))
  let at = head.copy(array)
  for (const each of list) {
    at = array.writeInt32BE(each?.length ?? -1, at)
    if (each === null) continue
    array.set(each, at)
    at += each.length
  }
  return array
}
