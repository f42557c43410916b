/** Opens the pool that a store URL names, with the engines it needs and no others: each is imported when it is named. */
import { existsSync } from 'node:fs'
import { type EngineDefinition, openStore, PoolRefusedError, type Store } from '@alkblobs/core'
import { CommandError, EXIT, UsageError } from './exit-codes.js'
import { codeOf, describe } from './failure.js'
import type { PostgresAddress, StoreAddress } from './store-url.js'

export interface PoolSettings {
  /** Time between staging and removal, in milliseconds; absent takes what the pool records. */
  readonly windowDelayMs?: number
}

/** Imports an engine's package; tests hand in one that fails. */
export interface EngineImports {
  mem(): Promise<typeof import('@alkblobs/engine-mem')>
  sqlite(): Promise<typeof import('@alkblobs/engine-sqlite')>
  local(): Promise<typeof import('@alkblobs/engine-local')>
  postgres(): Promise<typeof import('@alkblobs/engine-postgres')>
  pglo(): Promise<typeof import('@alkblobs/engine-pglo')>
}

const installed: EngineImports = {
  mem: () => import('@alkblobs/engine-mem'),
  sqlite: () => import('@alkblobs/engine-sqlite'),
  local: () => import('@alkblobs/engine-local'),
  postgres: () => import('@alkblobs/engine-postgres'),
  pglo: () => import('@alkblobs/engine-pglo')
}

/** Opens the pool. The caller closes it. */
export async function openPool(
  address: StoreAddress,
  settings: PoolSettings,
  imports: EngineImports = installed
): Promise<Store> {
  const engines = await enginesOf(address, imports)
  return openStore({ ...engines, ...settings }).catch(error => {
    // Another delay than the pool's can only come from the command line.
    if (error instanceof PoolRefusedError && error.reason === 'settings') throw new UsageError(describe(error), error)
    throw error
  })
}

async function enginesOf(
  address: StoreAddress,
  imports: EngineImports
): Promise<{ kv: EngineDefinition; large?: EngineDefinition }> {
  if (address.scheme === 'mem') {
    const { mem } = await named('@alkblobs/engine-mem', imports.mem)
    return { kv: mem() }
  }
  if (address.scheme === 'postgres') return await enginesOn(address, imports)
  const { sqlite } = await named('@alkblobs/engine-sqlite', imports.sqlite)
  const { local } = await named('@alkblobs/engine-local', imports.local)
  return { kv: sqlite({ file: address.file }), large: local({ root: address.root }) }
}

async function enginesOn(
  { connection: url, schema, large }: PostgresAddress,
  imports: EngineImports
): Promise<{ kv: EngineDefinition; large?: EngineDefinition }> {
  const { postgres } = await named('@alkblobs/engine-postgres', imports.postgres)
  const kv = postgres({ url, schema })
  if (large === undefined) return { kv }
  if ('root' in large) {
    const { local } = await named('@alkblobs/engine-local', imports.local)
    return { kv, large: local({ root: large.root }) }
  }
  const { pglo } = await named('@alkblobs/engine-pglo', imports.pglo)
  return { kv, large: pglo({ url, schema: large.schema }) }
}

async function named<T>(name: string, load: () => Promise<T>): Promise<T> {
  try {
    return await load()
  } catch (error) {
    if (codeOf(error) !== 'ERR_MODULE_NOT_FOUND') throw error
    throw new CommandError(EXIT.failed, `this store needs ${name}, which is not installed: npm install ${name}`, error)
  }
}

/**
 * Whether there is a pool: reading commands answer "absent" on a virgin store, and a misspelt folder looks just like one. A
 * database that is not there says so itself when it is opened.
 */
export function poolExists(address: StoreAddress): boolean {
  return address.scheme !== 'sqlite' || existsSync(address.file)
}
