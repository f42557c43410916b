/**
 * The binary form of COPY, because the driver moves everything else as text: hexadecimal digits cost bytes four to ten times the
 * time from 16 KiB up, and twice the memory.
 *
 *   head   "PGCOPY\n\377\r\n\0" (11 bytes), flags int32 0, length of an extension int32 0
 *   row    int16 number of fields; each field int32 length, then its bytes; length -1 is NULL
 *   tail   int16 -1
 */
import { int4 } from './binary.js'

/** One value as the type's binary form: bytes and text as they are, numbers big-endian. `null` is NULL. */
export type Field = Uint8Array | null

const HEAD = Buffer.concat([Buffer.from('PGCOPY\n\xff\r\n\0', 'latin1'), Buffer.alloc(8)])
const TAIL = Buffer.from([0xff, 0xff])
const LONG_LENGTH = 4 * 1024

/**
 * Chunks for `copyIn` from rows that have the columns' number of fields each. Long fields are not copied: a row's memory is its maker's
 * again when the next row is asked for. Nothing is kept back to be joined with what may not come for a while.
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

function int2(value: number): Buffer {
  const field = Buffer.allocUnsafe(2)
  field.writeInt16BE(value)
  return field
}
