/**
 * The server's messages out of bytes that come cut anywhere. Values of rows are copied once, from where they came to where they stay;
 * everything else is short.
 *
 *   message  letter, int32 length of what follows with itself, then that
 *   row      letter D: int16 number of values; each int32 length (-1 is NULL), then its bytes
 */
import { unreadable } from './failure.js'
import { ANSWER_LENGTH_MAX, OTHER_LENGTH_MAX } from './limits.js'
import { Pieces } from './pieces.js'

export type Row = (Buffer | null)[]

export interface Listener {
  /** Memory for a value of a row that begins now; all of it is filled. */
  room(column: number, length: number): Buffer
  row(row: Row): void
  /** Any other message. The body is the listener's for as long as this takes. */
  message(letter: number, body: Buffer): void
}

const EMPTY = Buffer.alloc(0)
const HEAD_LENGTH = 5
const ROW = 'D'.charCodeAt(0)

type Part = 'head' | 'count' | 'size' | 'body'

export class Answers {
  readonly #listener: Listener
  #part: Part = 'head'
  /** How many bytes the part has. */
  #needed = HEAD_LENGTH
  /** Those that have come, where a part is cut. */
  readonly #come = new Pieces()
  #letter = 0
  /** What is left of a row's message. */
  #left = 0
  #row: Row = []
  #columns = 0
  #value: Buffer | undefined
  #filled = 0

  constructor(listener: Listener) {
    this.#listener = listener
  }

  /** Takes bytes, none of which it keeps; `until` says after each message whether to stop. Answers how many it has taken. */
  take(bytes: Buffer, until: () => boolean): number {
    let at = 0
    while (at < bytes.length) {
      if (this.#value !== undefined) {
        at += this.#fill(this.#value, bytes, at)
      } else {
        const end = at + this.#needed
        if (this.#come.length === 0 && end <= bytes.length) {
          this.#read(bytes.subarray(at, end))
          at = end
        } else {
          at += this.#come.add(bytes, at, this.#needed)
          if (this.#come.length < this.#needed) return at
          this.#read(this.#come.take())
        }
      }
      if (this.#part === 'head' && until()) return at
    }
    return at
  }

  #read(part: Buffer): void {
    if (this.#part === 'head') this.#begin(part)
    else if (this.#part === 'count') this.#beginRow(part.readInt16BE(0))
    else if (this.#part === 'size') this.#beginValue(part.readInt32BE(0))
    else this.#end(part)
  }

  #begin(head: Buffer): void {
    this.#letter = head[0] as number
    const length = head.readInt32BE(1) - 4
    if (length < 0 || length > (this.#letter === ROW ? ANSWER_LENGTH_MAX : OTHER_LENGTH_MAX)) throw unreadable()
    this.#left = length
    if (this.#letter === ROW) this.#expect('count', 2)
    else if (length > 0) this.#expect('body', length)
    else this.#end(EMPTY)
  }

  #beginRow(columns: number): void {
    this.#left -= 2
    if (columns < 0) throw unreadable()
    this.#row = []
    this.#columns = columns
    this.#nextValue()
  }

  #beginValue(length: number): void {
    this.#left -= 4
    if (length > this.#left) throw unreadable()
    if (length < 0) this.#row.push(null)
    else {
      const room = this.#listener.room(this.#row.length, length)
      if (length > 0) {
        this.#value = room
        this.#filled = 0
        return
      }
      this.#row.push(room)
    }
    this.#nextValue()
  }

  #fill(value: Buffer, bytes: Buffer, at: number): number {
    const taken = bytes.copy(value, this.#filled, at, at + value.length - this.#filled)
    this.#filled += taken
    if (this.#filled < value.length) return taken
    this.#left -= value.length
    this.#value = undefined
    this.#row.push(value)
    this.#nextValue()
    return taken
  }

  #nextValue(): void {
    if (this.#row.length < this.#columns) {
      this.#expect('size', 4)
      return
    }
    if (this.#left !== 0) throw unreadable()
    this.#expect('head', HEAD_LENGTH)
    this.#listener.row(this.#row)
  }

  #end(body: Buffer): void {
    this.#expect('head', HEAD_LENGTH)
    this.#listener.message(this.#letter, body)
  }

  #expect(part: Part, length: number): void {
    this.#part = part
    this.#needed = length
  }
}
