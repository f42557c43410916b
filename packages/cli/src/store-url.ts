/**
 * Store URLs: which pool a command works on.
 *
 *   sqlite:<folder>   entries and small blobs in <folder>/kv.db, large blobs in <folder>/large
 *   mem:              nothing is kept; for trying things out
 */
import { join, resolve } from 'node:path'
import { UsageError } from './exit-codes.js'

/** The pool of a command that names none. */
export const DEFAULT_STORE = 'sqlite:.alkblobs'

export type StoreAddress =
  | { readonly scheme: 'mem'; readonly url: string }
  | {
      readonly scheme: 'sqlite'
      readonly url: string
      /** The pool's folder, as it was written. */
      readonly folder: string
      readonly file: string
      readonly root: string
    }

const FORMS = 'a store is named sqlite:<folder> or mem:'

/**
 * Reads a store URL. Opens and creates nothing.
 * @throws UsageError for anything that is none.
 */
export function parseStoreUrl(url: string): StoreAddress {
  const colon = url.indexOf(':')
  const scheme = colon === -1 ? '' : url.slice(0, colon).toLowerCase()
  const rest = url.slice(colon + 1)
  if (scheme === 'mem') {
    if (rest !== '') throw new UsageError('mem: takes nothing after the colon')
    return { scheme, url }
  }
  if (scheme === 'sqlite') return { scheme, url, ...sqlitePlaces(rest) }
  // A connection string may carry a password, so what was given is never repeated beyond its scheme.
  if (/^[a-z][a-z0-9+.-]+$/.test(scheme)) throw new UsageError(`no store is called "${scheme}:"; ${FORMS}`)
  throw new UsageError(`the store URL has no scheme; ${FORMS}`)
}

function sqlitePlaces(folder: string) {
  if (folder === '') throw new UsageError('sqlite: names no folder; say sqlite:./pool')
  if (folder.includes('\0')) throw new UsageError('the folder of a store cannot contain a NUL character')
  if (/^\/\/[^/]/.test(folder)) {
    throw new UsageError(
      'sqlite://name would be a host; say sqlite:name for a folder here, or sqlite:/name for one at the root'
    )
  }
  if (/^~(\/|$)/.test(folder)) throw new UsageError('the shell does not expand ~ after sqlite: ; use "$HOME" instead')
  if (folder.includes('?')) throw new UsageError('sqlite: takes no options after a question mark')
  return { folder, file: join(folder, 'kv.db'), root: join(folder, 'large') }
}

/** The absolute folder a pool lies in; none for one in memory. */
export function folderOf(address: StoreAddress): string | undefined {
  return address.scheme === 'sqlite' ? resolve(address.folder) : undefined
}
