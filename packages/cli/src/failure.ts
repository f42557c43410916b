/**
 * Failures in words. What a user can cause is one line without a stack trace; what nobody foresaw says so, and
 * `ALKBLOBS_DEBUG=1` shows the stack of anything.
 */
import { BlobError, PoolRefusedError } from '@alkblobs/core'
import { CommandError } from './exit-codes.js'
import { printable } from './format.js'

const SYSTEM_WORDS: Readonly<Record<string, string>> = {
  ENOENT: 'no such file or folder',
  EACCES: 'permission denied',
  EPERM: 'operation not permitted',
  EISDIR: 'is a folder',
  ENOTDIR: 'a part of the path is not a folder',
  ENOSPC: 'no space left on the device',
  EDQUOT: 'over the disk quota',
  EROFS: 'the file system is read-only',
  EMFILE: 'too many open files',
  ENFILE: 'too many open files in the system',
  EIO: 'input/output error',
  ELOOP: 'is a symbolic link, which is not followed',
  EEXIST: 'exists already',
  ENAMETOOLONG: 'the name is too long',
  EBUSY: 'is in use',
  ENXIO: 'is a special file'
}

/** The `code` of a failure, if it has one: `ENOENT`, `ERR_BLOB_CORRUPT`. */
export function codeOf(error: unknown): string | undefined {
  if (typeof error !== 'object' || error === null || !('code' in error)) return undefined
  return typeof error.code === 'string' ? error.code : undefined
}

/** A failure as one line for people, without its stack. */
export function describe(error: unknown): string {
  const code = codeOf(error)
  if (error instanceof PoolRefusedError) return printable(refusal(error))
  if (error instanceof BlobError || error instanceof CommandError) return printable(withCause(error))
  const words = code === undefined ? undefined : SYSTEM_WORDS[code]
  if (words !== undefined) return words
  const message = error instanceof Error ? error.message : String(error)
  if (code !== undefined) return printable(message)
  return `${printable(message)} (unexpected; ALKBLOBS_DEBUG=1 shows where)`
}

/** What to do about a pool that must not be used, where core's advice is for people who write programs. */
const INSTEAD: Partial<Record<PoolRefusedError['reason'], string>> = {
  settings:
    'a pool gets its delay when it is made: leave --window-delay-ms out, or change it with `alkblobs settings --window-delay`',
  moved: 'if this is the pool itself, say `alkblobs settings --acknowledge-move`; if it is a copy, `alkblobs fork`',
  derivation: 'this command works on pools of blake3 only; use the library for this one',
  newer: 'it may be read; upgrade alkblobs to change it',
  held: 'close the program that has it open'
}

/** Why a pool is refused and what to do, in words of the command line. */
function refusal(error: PoolRefusedError): string {
  const { reason, message } = error
  const instead = INSTEAD[reason]
  if (instead !== undefined) return `${message.split(';')[0]}; ${instead}`
  return `${message} (the place is that of --store)`
}

/** An engine's own message is often the only one that names the file or the lock, so it is added where it says more. */
function withCause(error: Error): string {
  const { cause } = error
  if (error instanceof CommandError || !(cause instanceof Error)) return error.message
  return error.message.includes(cause.message) ? error.message : `${error.message} (${cause.message})`
}

/** What `ALKBLOBS_DEBUG=1` adds: the stack of the failure and of everything that caused it. */
export function trace(error: unknown): string {
  const lines: string[] = []
  for (let each = error; each instanceof Error; each = each.cause) lines.push(each.stack ?? String(each))
  return lines.join('\ncaused by: ')
}
