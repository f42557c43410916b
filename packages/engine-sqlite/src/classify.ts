/** Names what SQLite, the file system and this engine throw. */
import { closeSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { EngineFault, type ErrorCode } from '@alkblobs/core/engine'

/** SQLite's primary result codes; extended ones (`SQLITE_IOERR_FSYNC`) start with theirs. */
const SQLITE: readonly (readonly [prefix: string, code: ErrorCode])[] = [
  ['SQLITE_BUSY', 'conflict'],
  ['SQLITE_LOCKED', 'conflict'],
  // Ten times lost the race for the log's index: others are busy with it.
  ['SQLITE_PROTOCOL', 'conflict'],
  ['SQLITE_FULL', 'full'],
  // The file was moved or removed under the connection; it may come back.
  ['SQLITE_READONLY_DBMOVED', 'transient'],
  ['SQLITE_READONLY', 'denied'],
  ['SQLITE_PERM', 'denied'],
  ['SQLITE_AUTH', 'denied'],
  // Where it may mean something else, `named` has looked.
  ['SQLITE_CANTOPEN', 'denied'],
  ['SQLITE_CORRUPT', 'corrupt'],
  // On a file that was a pool when it was opened; before that, `named` says `foreign`.
  ['SQLITE_NOTADB', 'corrupt'],
  ['SQLITE_IOERR_NOMEM', 'exhausted'],
  // A disk that fails may be a cable, a server or an adapter: the caller may try again, the data is not judged by it.
  ['SQLITE_IOERR', 'transient'],
  ['SQLITE_NOMEM', 'exhausted']
]

const SYSTEM: Readonly<Record<string, ErrorCode>> = {
  EACCES: 'denied',
  EPERM: 'denied',
  EROFS: 'denied',
  // Something on the way to the file is no folder, or the path cannot be: nobody will get there.
  ENOTDIR: 'denied',
  EEXIST: 'denied',
  EISDIR: 'denied',
  ELOOP: 'denied',
  ENAMETOOLONG: 'denied',
  ENOSPC: 'full',
  EDQUOT: 'full',
  EFBIG: 'full',
  EMFILE: 'exhausted',
  ENFILE: 'exhausted',
  ENOMEM: 'exhausted',
  // A folder that was there a moment ago, a mount that went away.
  ENOENT: 'transient',
  EIO: 'transient',
  ESTALE: 'transient',
  ENODEV: 'transient',
  ENXIO: 'transient',
  EBUSY: 'conflict'
}

export function classify(error: unknown): ErrorCode {
  if (error instanceof EngineFault) return error.code
  const code = codeOf(error)
  if (code === undefined) return 'unknown'
  return SQLITE.find(([prefix]) => code.startsWith(prefix))?.[1] ?? SYSTEM[code] ?? 'unknown'
}

/** Whether another connection stood in the way, so that the same step may succeed in a moment. */
export function isBusy(error: unknown): boolean {
  const code = codeOf(error)
  return code !== undefined && /^SQLITE_(BUSY|LOCKED|PROTOCOL)/.test(code)
}

/** Whether the disk had no room. */
export function isFull(error: unknown): boolean {
  return classify(error) === 'full'
}

/** What an error at opening means: SQLite says little, so the surroundings are asked. */
export function named(error: unknown, file: string): unknown {
  const code = codeOf(error)
  if (code?.startsWith('SQLITE_NOTADB')) return new EngineFault('foreign', 'the file is no SQLite database', error)
  // The driver has no code for a folder that is not there.
  if (!code?.startsWith('SQLITE_CANTOPEN') && !(error instanceof TypeError)) return error
  const kind = surroundingsOf(file)
  return kind === undefined ? error : new EngineFault(kind, 'the file cannot be opened', error)
}

function surroundingsOf(file: string): ErrorCode | undefined {
  try {
    // A folder holds no locks, so opening it here is harmless; it fails where descriptors or rights are missing.
    closeSync(openSync(dirname(file), 'r'))
    return statSync(file).isDirectory() ? 'foreign' : undefined
  } catch (error) {
    return classify(error)
  }
}

function codeOf(error: unknown): string | undefined {
  const code = error instanceof Error ? (error as NodeJS.ErrnoException).code : undefined
  return typeof code === 'string' ? code : undefined
}
