/**
 * A file as content to put. A file that changes while it is read would give a key for bytes that never were a file
 * together, so what is read ends as a failure then, before anything of it is kept.
 */
import { constants } from 'node:fs'
import { type FileHandle, open } from 'node:fs/promises'
import { CommandError, EXIT } from './exit-codes.js'

/** Read in one piece up to here: one system call instead of a stream. */
const WHOLE_LENGTH_MAX = 128 * 1024
const CHUNK_LENGTH = 512 * 1024

export interface FileContent {
  readonly content: Uint8Array | AsyncIterable<Uint8Array>
  /** In bytes; absent for files that have no length until they are read, as in /proc. */
  readonly length?: number
}

/** Opens a file, hands its content to `use`, and closes it. `onBytes` hears of every read. */
export async function withFileContent<R>(
  path: string | Buffer,
  onBytes: (length: number) => void,
  use: (file: FileContent) => Promise<R>
): Promise<R> {
  // Neither flag exists on Windows. Without O_NONBLOCK a named pipe that took the file's place would wait for a writer.
  const handle = await open(path, constants.O_RDONLY | (constants.O_NOFOLLOW ?? 0) | (constants.O_NONBLOCK ?? 0))
  try {
    const before = await handle.stat()
    if (!before.isFile()) throw new CommandError(EXIT.failed, 'is not a regular file any more')
    const chunks = unchanged(handle, before, onBytes)
    if (before.size === 0) return await use({ content: chunks })
    if (before.size > WHOLE_LENGTH_MAX) return await use({ content: chunks, length: before.size })
    const whole: Uint8Array[] = []
    for await (const chunk of chunks) whole.push(chunk)
    const [only] = whole
    return await use({ content: whole.length === 1 && only !== undefined ? only : Buffer.concat(whole) })
  } finally {
    await handle.close()
  }
}

interface Moment {
  readonly size: number
  readonly mtimeMs: number
}

async function* unchanged(
  handle: FileHandle,
  before: Moment,
  onBytes: (length: number) => void
): AsyncGenerator<Uint8Array> {
  let position = 0
  while (true) {
    const length = before.size === 0 ? CHUNK_LENGTH : Math.min(CHUNK_LENGTH, before.size - position + 1)
    const { buffer, bytesRead } = await handle.read(Buffer.allocUnsafe(length), 0, length, position)
    if (bytesRead === 0) break
    position += bytesRead
    if (before.size > 0 && position > before.size) throw changed()
    onBytes(bytesRead)
    yield buffer.subarray(0, bytesRead)
  }
  const after = await handle.stat()
  // A file in /proc has no size and yet has bytes; any other must have had the bytes it was said to have.
  const isWhole = position === before.size || before.size === 0
  if (!isWhole || after.size !== before.size || after.mtimeMs !== before.mtimeMs) throw changed()
}

const changed = () => new CommandError(EXIT.failed, 'changed while it was being read; nothing of it was kept')
