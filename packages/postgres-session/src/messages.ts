/**
 * Messages of the server's protocol (version 3) that the driver cannot make: statements whose parameters and rows are in binary form.
 *
 *   Parse    P  name\0 text\0, int16 0: the server finds the types itself
 *   Bind     B  \0 name\0, int16 1, int16 1 (all parameters binary), int16 count, each int32 length and its bytes (-1 is NULL),
 *               int16 1, int16 1 (all columns binary)
 *   Execute  E  \0, int32 0 (all rows)
 *   Sync     S  ends a pipeline: after an error the server passes over everything up to here
 *
 * A message is its letter, int32 length of what follows with itself, then that.
 */

/** A parameter in the binary form of its type. A list is one value in pieces, which are sent as they lie. */
export type Binary = Uint8Array | readonly Uint8Array[] | null

const LONG_LENGTH = 4 * 1024
const SYNC = Buffer.from([0x53, 0, 0, 0, 4])
const EXECUTE = Buffer.from([0x45, 0, 0, 0, 9, 0, 0, 0, 0, 0])
/** One format code, which is 1, for all. */
const ALL_BINARY = Buffer.from([0, 1, 0, 1])

/** Messages in the making. What is long is not copied: it must stay as it is until the server has answered. */
export class Pipeline {
  readonly #long: Uint8Array[] = []
  #short: Uint8Array[] = []

  parse(name: string, text: string): void {
    const [named, texted] = [Buffer.byteLength(name), Buffer.byteLength(text)]
    const message = Buffer.alloc(1 + 4 + named + 1 + texted + 1 + 2)
    message[0] = 0x50
    message.writeInt32BE(message.length - 1, 1)
    message.write(name, 5)
    message.write(text, 5 + named + 1)
    this.#short.push(message)
  }

  bind(name: string, params: readonly Binary[]): void {
    const named = Buffer.byteLength(name)
    const length = params.reduce((sum, param) => sum + 4 + lengthOf(param), 4 + 1 + named + 1 + 4 + 2 + 4)
    const head = Buffer.alloc(1 + 4 + 1 + named + 1 + 4 + 2)
    head[0] = 0x42
    head.writeInt32BE(length, 1)
    head.write(name, 6)
    ALL_BINARY.copy(head, 6 + named + 1)
    head.writeInt16BE(params.length, head.length - 2)
    this.#short.push(head)
    for (const param of params) this.#value(param)
    this.#short.push(ALL_BINARY)
  }

  execute(): void {
    this.#short.push(EXECUTE)
  }

  /** What is to be written, in order; ends in a Sync. */
  ended(): readonly Uint8Array[] {
    this.#short.push(SYNC)
    this.#join()
    return this.#long
  }

  #value(param: Binary): void {
    const size = Buffer.allocUnsafe(4)
    size.writeInt32BE(param === null ? -1 : lengthOf(param))
    this.#short.push(size)
    for (const piece of piecesOf(param)) {
      if (piece.length < LONG_LENGTH) this.#short.push(piece)
      else {
        this.#join()
        this.#long.push(piece)
      }
    }
  }

  #join(): void {
    this.#long.push(Buffer.concat(this.#short))
    this.#short = []
  }
}

function piecesOf(param: Binary): readonly Uint8Array[] {
  if (param === null) return []
  return param instanceof Uint8Array ? [param] : param
}

function lengthOf(param: Binary): number {
  return piecesOf(param).reduce((sum, { length }) => sum + length, 0)
}
