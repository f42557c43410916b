/**
 * What `put` is asked to put: the arguments in their order, folders by their files, sorted by name. Symbolic links are not
 * followed and special files are not read; both are reported. The pool's own folder is left out, or a pool inside a folder
 * would be put into itself.
 */
import type { Stats } from 'node:fs'
import { lstat, readdir, realpath } from 'node:fs/promises'
import { sep } from 'node:path'
import { UsageError } from './exit-codes.js'
import { describe } from './failure.js'

/** A path as the system knows it: names on disk need not be UTF-8, and a name that was decoded might not be found again. */
type Path = string | Buffer

export type Found =
  | { readonly kind: 'file'; readonly path: Path; readonly name: string }
  | { readonly kind: 'stdin'; readonly name: '-' }
  | { readonly kind: 'skipped'; readonly name: string; readonly reason: string }
  | { readonly kind: 'failed'; readonly name: string; readonly reason: string; readonly error?: unknown }

interface Folder {
  readonly path: Path
  readonly name: string
  /** Where it really lies, to know the pool's folder by. */
  readonly real: string
}

const SEPARATOR = Buffer.from(sep)

/** @throws UsageError when stdin is named twice: it can be read only once. */
export function requireOneStdin(names: readonly string[]): void {
  if (names.filter(name => name === '-').length > 1) throw new UsageError('stdin (-) can be put only once')
}

/** Finds what the arguments name. `poolFolder` is left out wherever it is met. */
export async function* walk(names: readonly string[], poolFolder: string | undefined): AsyncGenerator<Found> {
  const pool = poolFolder === undefined ? undefined : await realpath(poolFolder).catch(() => poolFolder)
  for (const name of names) {
    if (name === '-') yield { kind: 'stdin', name }
    else yield* argument(name, pool)
  }
}

async function* argument(name: string, pool: string | undefined): AsyncGenerator<Found> {
  let stats: Stats
  let real: string
  try {
    stats = await lstat(name)
    if (stats.isSymbolicLink()) {
      yield { kind: 'failed', name, reason: 'is a symbolic link, which is not followed; name its target' }
      return
    }
    real = await realpath(name)
  } catch (error) {
    yield { kind: 'failed', name, reason: describe(error), error }
    return
  }
  if (isInside(real, pool)) yield { kind: 'failed', name, reason: 'belongs to the pool itself' }
  else if (stats.isFile()) yield { kind: 'file', path: name, name }
  else if (stats.isDirectory()) yield* contents({ path: name, name, real }, pool)
  else yield { kind: 'failed', name, reason: `is ${special(stats)}, which is not read; use - with a redirection` }
}

async function* contents(folder: Folder, pool: string | undefined): AsyncGenerator<Found> {
  let found: Awaited<ReturnType<typeof entriesOf>>
  try {
    found = await entriesOf(folder.path)
  } catch (error) {
    yield { kind: 'failed', name: folder.name, reason: describe(error), error }
    return
  }
  for (const entry of found) {
    const text = entry.name.toString()
    const name = joined(folder.name, text)
    const path = Buffer.concat([Buffer.from(folder.path), SEPARATOR, entry.name])
    if (entry.isFile()) yield { kind: 'file', path, name }
    else if (entry.isDirectory()) {
      const real = joined(folder.real, text)
      if (real === pool) yield { kind: 'skipped', name, reason: 'the pool itself' }
      else yield* contents({ path, name, real }, pool)
    } else if (entry.isSymbolicLink()) yield { kind: 'skipped', name, reason: 'a symbolic link' }
    else yield { kind: 'skipped', name, reason: special(entry) }
  }
}

async function entriesOf(path: Path) {
  const found = await readdir(path, { withFileTypes: true, encoding: 'buffer' })
  return found.sort((one, other) => Buffer.compare(one.name, other.name))
}

const joined = (folder: string, name: string): string => (folder.endsWith(sep) ? folder + name : folder + sep + name)

const isInside = (path: string, folder: string | undefined): boolean =>
  folder !== undefined && (path === folder || path.startsWith(folder + sep))

function special(entry: Pick<Stats, 'isFIFO' | 'isSocket' | 'isBlockDevice' | 'isCharacterDevice'>): string {
  if (entry.isFIFO()) return 'a named pipe'
  if (entry.isSocket()) return 'a socket'
  if (entry.isBlockDevice() || entry.isCharacterDevice()) return 'a device'
  return 'a special file'
}

/** The bytes of everything that would be put, as far as they can be known beforehand. */
export async function measure(
  names: readonly string[],
  poolFolder: string | undefined,
  signal: AbortSignal
): Promise<number> {
  let total = 0
  for await (const found of walk(names, poolFolder)) {
    if (signal.aborted) return total
    // What cannot be looked at here is reported when it is put.
    if (found.kind === 'file') total += (await lstat(found.path).catch(() => undefined))?.size ?? 0
  }
  return total
}
