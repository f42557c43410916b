/**
 * The binary form of COPY, because the driver moves everything else as text: hexadecimal digits cost bytes four to ten times the
 * time from 16 KiB up, and twice the memory.
 *
 *   head   "PGCOPY\n\377\r\n\0" (11 bytes), flags int32 0, length of an extension int32 0
 *   row    int16 number of fields; each field int32 length, then its bytes; length -1 is NULL
 *   tail   int16 -1
 */
import { EngineFault } from '@alkblobs/core/engine'
import { int4 } from './binary.js'

/** One value as the type's binary form: bytes and text as they are, numbers big-endian. `null` is NULL. */
export type Field = Uint8Array | null

const HEAD = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)])
const SIGNATURE_LENGTH = 11
const TAIL = Buffer.from([0xff, 0xff])
/** Rows are joined up to here: each write of the socket costs about as much as copying so many bytes. */
const JOINED_LENGTH = 64 * 1024
const LONG_LENGTH = 4 * 1024

/** Chunks for `copyIn` from rows that have the columns' number of fields each. Fields are copied, or read before the next row is asked for. */
export async function* copyRows(
  rows: AsyncIterable<readonly Field[]> | Iterable<readonly Field[]>
): AsyncGenerator<Uint8Array> {
  let parts: Uint8Array[] = [HEAD]
  let length = HEAD.length
  for await (const fields of rows) {
    const size = fields.reduce((sum, field) => sum + 4 + (field?.length ?? 0), 2)
    const row = Buffer.allocUnsafe(size)
    let at = row.writeInt16BE(fields.length, 0)
    for (const field of fields) {
      at = row.writeInt32BE(field?.length ?? -1, at)
      if (field === null) continue
      row.set(field, at)
      at += field.length
    }
    parts.push(row)
    length += size
    if (length < JOINED_LENGTH) continue
    yield parts.length === 1 ? row : Buffer.concat(parts, length)
    parts = []
    length = 0
  }
  yield Buffer.concat([...parts, TAIL])
}

/**
 * The same for rows of long fields, which are not copied: a row's memory is its maker's again when the next row is asked for. Nothing
 * is kept back to be joined with what may not come for a while.
 */
export async function* copyLongRows(rows: AsyncIterable<readonly Field[]>): AsyncGenerator<Uint8Array> {
  let short: Uint8Array[] = [HEAD]
  for await (const fields of rows) {
    short.push(int2(fields.length))
    for (const field of fields) {
      short.push(int4(field?.length ?? -1))
      if (field === null) continue
      if (field.length < LONG_LENGTH) short.push(field)
      else {
        yield Buffer.concat(short)
        yield field
        short = []
      }
    }
    if (short.length > 0) yield Buffer.concat(short)
    short = []
  }
  yield Buffer.concat([...short, TAIL])
}

/** Rows from the chunks of `copyOut`, however they are cut. Fields may share memory with each other, with nothing else. */
export async function* copiedRows(chunks: AsyncIterable<Buffer>): AsyncGenerator<(Buffer | null)[]> {
  let rest: Buffer = Buffer.alloc(0)
  let isBegun = false
  for await (const chunk of chunks) {
    rest = rest.length === 0 ? chunk : Buffer.concat([rest, chunk])
    if (!isBegun) {
      const begin = headLength(rest)
      if (begin === undefined) continue
      rest = rest.subarray(begin)
      isBegun = true
    }
    for (let row = readRow(rest); row !== undefined; row = readRow(rest)) {
      rest = rest.subarray(row.length)
      if (row.fields !== undefined) yield row.fields
    }
  }
  if (!isBegun || rest.length > 0) throw new EngineFault('corrupt', 'a copy ended in the middle of a row')
}

/** Where the rows start, once that is known. */
function headLength(bytes: Buffer): number | undefined {
  if (bytes.length < HEAD.length) return undefined
  if (!bytes.subarray(0, SIGNATURE_LENGTH).equals(HEAD.subarray(0, SIGNATURE_LENGTH))) {
    throw new EngineFault('corrupt', 'a copy that does not start as one')
  }
  const length = HEAD.length + bytes.readInt32BE(HEAD.length - 4)
  return bytes.length < length ? undefined : length
}

/** The first row, if it is there whole; the tail has no fields. */
function readRow(bytes: Buffer): { readonly length: number; readonly fields?: (Buffer | null)[] } | undefined {
  if (bytes.length < 2) return undefined
  const count = bytes.readInt16BE(0)
  if (count === -1) return { length: 2 }
  const fields: (Buffer | null)[] = []
  let at = 2
  for (let n = 0; n < count; n++) {
    if (bytes.length < at + 4) return undefined
    const length = bytes.readInt32BE(at)
    at += 4
    if (length === -1) {
      fields.push(null)
      continue
    }
    if (bytes.length < at + length) return undefined
    fields.push(bytes.subarray(at, at + length))
    at += length
  }
  return { length: at, fields }
}

function int2(value: number): Buffer {
  const field = Buffer.allocUnsafe(2)
  field.writeInt16BE(value)
  return field
}
