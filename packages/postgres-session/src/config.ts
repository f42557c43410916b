/** What a user says about a server, and its check. What is left out comes from the `PG…` variables that libpq reads too. */
import { userInfo } from 'node:os'
import type { ConnectionOptions } from 'node:tls'
import { InvalidArgumentError } from '@alkblobs/core/engine'

/**
 * `false` or `disable`: never. `prefer`: if the server can, whoever it is. `require`: or not at all, whoever it is.
 * `verify-full`, `true` or options of `node:tls`: or not at all, and the certificate must be valid and for this host.
 */
export type Tls = boolean | 'disable' | 'prefer' | 'require' | 'verify-full' | ConnectionOptions

export interface ConnectionConfig {
  /** `postgres://user:password@host:port/database?sslmode=…`. The other fields come before what it says. */
  readonly url?: string
  /** A name, an address, or the folder of a Unix socket. */
  readonly host?: string
  readonly port?: number
  readonly user?: string
  readonly password?: string
  readonly database?: string
  readonly ssl?: Tls
  /** What the server's list of sessions shows; by default `alkblobs`. */
  readonly applicationName?: string
  /** Most sessions at once, held ones included; 2 to 1,000, by default 10. */
  readonly poolMax?: number
}

export interface Timeouts {
  /** Longest a connection may take until it is ready for statements. */
  readonly connectTimeoutMs: number
  /** Longest the server waits for a lock before it refuses (55P03). */
  readonly lockTimeoutMs: number
}

export interface CheckedConfig {
  readonly host: string
  readonly port: number
  readonly user: string
  readonly password: string
  readonly database: string
  readonly tls: Tls
  readonly applicationName: string
  readonly poolMax: number
}

const POOL_MAX_DEFAULT = 10
const URL_OPTIONS = ['sslmode', 'application_name', 'host', 'port', 'user', 'password', 'dbname']

/** The user of the process; containers run under numbers that have no name. */
function systemUser(): string | undefined {
  try {
    return userInfo().username
  } catch {
    return undefined
  }
}

/** @throws InvalidArgumentError (`ERR_BLOB_INVALID_ARGUMENT`) that names the field; never with a value in it. */
export function checkConfig(config: ConnectionConfig): CheckedConfig {
  if (typeof config !== 'object' || config === null) throw new InvalidArgumentError('config', 'an object')
  const url = fromUrl(config.url)
  const { env } = process
  const user = text('user', config.user ?? url.user ?? env.PGUSER ?? systemUser())
  return {
    host: text('host', config.host ?? url.host ?? env.PGHOST ?? 'localhost'),
    port: wholeNumber('port', config.port ?? url.port ?? Number(env.PGPORT ?? 5432), 1, 65_535),
    user,
    password: text('password', config.password ?? url.password ?? env.PGPASSWORD ?? '', { empty: true }),
    database: text('database', config.database ?? url.database ?? env.PGDATABASE ?? user),
    tls: checkTls(config.ssl ?? url.tls ?? env.PGSSLMODE ?? false),
    applicationName: text('applicationName', config.applicationName ?? url.applicationName ?? 'alkblobs'),
    poolMax: wholeNumber('poolMax', config.poolMax ?? POOL_MAX_DEFAULT, 2, 1_000)
  }
}

interface UrlParts {
  readonly host?: string | undefined
  readonly port?: number | undefined
  readonly user?: string | undefined
  readonly password?: string | undefined
  readonly database?: string | undefined
  readonly tls?: string | undefined
  readonly applicationName?: string | undefined
}

function fromUrl(given: string | undefined): UrlParts {
  if (given === undefined) return {}
  const expected = 'postgres://user:password@host:port/database'
  let url: URL
  try {
    url = new URL(given)
  } catch {
    // What URL throws quotes what it was given, and a password may be in it.
    throw new InvalidArgumentError('url', expected)
  }
  if (url.protocol !== 'postgres:' && url.protocol !== 'postgresql:') throw new InvalidArgumentError('url', expected)
  // An option that is ignored may be the one that was to make the connection safe.
  const unknown = [...url.searchParams.keys()].find(name => !URL_OPTIONS.includes(name))
  if (unknown !== undefined) throw new InvalidArgumentError('url', `of options only ${URL_OPTIONS.join(', ')}`)
  const option = (name: string) => url.searchParams.get(name) ?? undefined
  const part = (value: string) => (value === '' ? undefined : decoded(value))
  const port = url.port === '' ? option('port') : url.port
  return {
    host: part(url.hostname.replace(/^\[(.*)\]$/, '$1')) ?? option('host'),
    port: port === undefined ? undefined : Number(port),
    user: part(url.username) ?? option('user'),
    password: part(url.password) ?? option('password'),
    database: part(url.pathname.slice(1)) ?? option('dbname'),
    tls: option('sslmode'),
    applicationName: option('application_name')
  }
}

function decoded(part: string): string {
  try {
    return decodeURIComponent(part)
  } catch {
    throw new InvalidArgumentError('url', 'percent-encoded where it has special characters')
  }
}

function text(name: string, value: unknown, { empty = false } = {}): string {
  if (typeof value !== 'string' || value.includes('\0') || (value === '' && !empty)) {
    throw new InvalidArgumentError(name, 'text')
  }
  return value
}

function wholeNumber(name: string, value: unknown, least: number, most: number): number {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < least || value > most) {
    throw new InvalidArgumentError(name, `a whole number from ${least} to ${most}`)
  }
  return value
}

function checkTls(value: unknown): Tls {
  // libpq's `allow` would try without first; `verify-ca` does not look at the host. Here both mean the stricter neighbour.
  const named = {
    disable: false,
    allow: 'prefer',
    prefer: 'prefer',
    require: 'require',
    'verify-ca': 'verify-full'
  } as const
  if (typeof value === 'boolean' || value === 'verify-full') return value
  if (typeof value === 'object' && value !== null) return value
  if (typeof value === 'string' && Object.hasOwn(named, value)) return named[value as keyof typeof named]
  throw new InvalidArgumentError(
    'ssl',
    "a boolean, 'disable', 'prefer', 'require', 'verify-full' or options of node:tls"
  )
}
