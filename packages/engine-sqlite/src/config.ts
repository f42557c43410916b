/** What a user may say about a pool in a SQLite file. */
import { resolve } from 'node:path'
import { InvalidArgumentError } from '@alkblobs/core/engine'

export interface SqliteConfig {
  /** Path of the file. It and its folders are made by the first write; a relative path is taken from the folder of now. */
  readonly file: string
  /**
   * `disk` (the default): what resolved survives a power loss. `os`: it survives the death of the process, but the last
   * commits may be undone by a power loss; the file stays whole.
   */
  readonly durability?: 'disk' | 'os'
}

export interface CheckedConfig {
  readonly file: string
  readonly durability: 'disk' | 'os'
}

/** Checks what was given. @throws InvalidArgumentError (`ERR_BLOB_INVALID_ARGUMENT`) naming what is wrong. */
export function checkConfig(config: SqliteConfig): CheckedConfig {
  if (typeof config !== 'object' || config === null) throw new InvalidArgumentError('config', 'an object with a file')
  const { file, durability = 'disk' } = config
  if (typeof file !== 'string' || file === '' || file.includes('\0')) {
    throw new InvalidArgumentError('file', 'the path of a file')
  }
  // SQLite would understand these as something else than the path of a file: memory, and options.
  if (file === ':memory:' || file.startsWith('file:')) {
    throw new InvalidArgumentError('file', 'a plain path; for memory use @alkblobs/engine-mem')
  }
  // better-sqlite3 trims names, so the file made would be another one than the file looked at.
  if (file !== file.trimEnd()) throw new InvalidArgumentError('file', 'a path that does not end in white space')
  if (durability !== 'disk' && durability !== 'os') throw new InvalidArgumentError('durability', "'disk' or 'os'")
  return { file: resolve(file), durability }
}
