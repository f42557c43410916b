/**
 * Store URLs: which pool a command works on.
 *
 *   sqlite:<folder>                     entries and small blobs in <folder>/kv.db, large blobs in <folder>/large
 *   postgres://…/<database>?root=<dir>  entries and small blobs in PostgreSQL, large blobs as files below <dir>
 *   postgres://…/<database>?large=pglo  the same, large blobs as large objects of that database
 *   mem:                                nothing is kept; for trying things out
 *
 * `?schema=<name>` is the schema of the pool in PostgreSQL; every other option belongs to the connection.
 */
import { join, resolve } from 'node:path'
import { UsageError } from './exit-codes.js'

/** The pool of a command that names none. */
export const DEFAULT_STORE = 'sqlite:.alkblobs'

/** A pool in PostgreSQL; without `large` it takes small blobs alone. */
export interface PostgresAddress {
  readonly scheme: 'postgres'
  /** As it may be shown: without user, password and options. */
  readonly url: string
  /** What the connection is made with. It may carry a password. */
  readonly connection: string
  readonly schema: string
  readonly large: { readonly root: string } | { readonly schema: string } | undefined
}

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
  | PostgresAddress

const FORMS = 'a store is named sqlite:<folder>, postgres://<host>/<database> or mem:'
const SCHEMA_DEFAULT = 'alkblobs'
const OWN_OPTIONS = ['schema', 'root', 'large'] as const

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
  if (scheme === 'postgres' || scheme === 'postgresql') return postgresPlaces(url)
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

function postgresPlaces(given: string): PostgresAddress {
  let url: URL
  try {
    url = new URL(given)
  } catch {
    // What URL throws quotes what it was given.
    throw new UsageError('the store URL is malformed; say postgres://user@host/database')
  }
  if (!given.slice(given.indexOf(':') + 1).startsWith('//')) {
    throw new UsageError('two slashes follow postgres: ; say postgres://user@host/database')
  }
  const options = new Map(OWN_OPTIONS.map(name => [name, optionOf(url, name)]))
  const [schema = SCHEMA_DEFAULT, root, large] = OWN_OPTIONS.map(name => options.get(name))
  if (large !== undefined && large !== 'pglo') throw new UsageError('large= of a postgres store is pglo, or left out')
  if (large !== undefined && root !== undefined)
    throw new UsageError('large blobs go to root= or to large=pglo, not both')
  const shown = `postgres://${url.host}${url.pathname}`
  return {
    scheme: 'postgres',
    url: schema === SCHEMA_DEFAULT ? shown : `${shown}?schema=${encodeURIComponent(schema)}`,
    connection: url.href,
    schema,
    // Two pools in one database must not share the rows of their large objects.
    large: root !== undefined ? { root } : large !== undefined ? { schema: `${schema}_pglo` } : undefined
  }
}

/** Takes an option of ours out of the URL. */
function optionOf(url: URL, name: string): string | undefined {
  const [value, ...more] = url.searchParams.getAll(name)
  if (value === undefined) return undefined
  if (more.length > 0 || value === '' || value.includes('\0')) {
    throw new UsageError(`${name}= of a postgres store wants one value`)
  }
  url.searchParams.delete(name)
  return value
}

/** The absolute folder a pool, or a part of it, lies in; none for one that has no files. */
export function folderOf(address: StoreAddress): string | undefined {
  if (address.scheme === 'sqlite') return resolve(address.folder)
  if (address.scheme === 'postgres' && address.large !== undefined && 'root' in address.large) {
    return resolve(address.large.root)
  }
  return undefined
}
