/**
 * Writes a file whole or not at all: the bytes go to a temporary file beside it, which takes its name once everything was
 * written and made durable. Whatever ends the writing early, the temporary file is removed and the name untouched.
 */
import { randomBytes } from 'node:crypto'
import { link, lstat, open, rename, rm } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { CommandError, EXIT } from './exit-codes.js'
import { codeOf, describe } from './failure.js'
import { printable } from './format.js'

export interface WriteOptions {
  /** Whether a file that exists is replaced. */
  readonly replaces: boolean
  readonly signal: AbortSignal
}

/** @throws CommandError when a file of that name must not be written. Decided again when the file takes its name. */
export async function requireWritable(file: string, replaces: boolean): Promise<void> {
  const found = await lstat(file).catch(() => undefined)
  if (found === undefined) return
  if (found.isDirectory()) throw new CommandError(EXIT.failed, `${printable(file)} is a folder`)
  // Renaming over a device, a pipe or a link would replace the thing itself instead of writing to it.
  if (!found.isFile())
    throw new CommandError(EXIT.failed, `${printable(file)} is not a regular file; use > instead of -o`)
  if (!replaces) throw existing(file)
}

/** Writes the chunks into `file`. */
export async function writeWhole(
  file: string,
  chunks: AsyncIterable<Uint8Array>,
  { replaces, signal }: WriteOptions
): Promise<void> {
  const temporary = join(dirname(file), `.${basename(file).slice(0, 100)}.${randomBytes(6).toString('hex')}.part`)
  const handle = await open(temporary, 'wx').catch(error => {
    throw new CommandError(EXIT.failed, `${printable(file)} cannot be written: ${describe(error)}`, error)
  })
  try {
    try {
      for await (const chunk of chunks) {
        signal.throwIfAborted()
        await handle.writeFile(chunk)
      }
      await handle.sync()
    } finally {
      await handle.close()
    }
    signal.throwIfAborted()
    if (replaces) await rename(temporary, file)
    else await nameOnce(temporary, file)
  } finally {
    // After a rename there is nothing left to remove.
    await rm(temporary, { force: true })
  }
}

/** A link fails where a rename would silently replace a file that appeared meanwhile. */
async function nameOnce(temporary: string, file: string): Promise<void> {
  try {
    await link(temporary, file)
  } catch (error) {
    if (codeOf(error) === 'EEXIST') throw existing(file)
    // File systems without links: the name is looked at once more, which is the best they can do.
    await requireWritable(file, false)
    await rename(temporary, file)
  }
}

const existing = (file: string) =>
  new CommandError(EXIT.failed, `${printable(file)} exists already; --force replaces it`)
