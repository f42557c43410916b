/** The stores that bad input is tried on, each on media of its own below one temporary folder, and a look at those media. */
import { createHash } from 'node:crypto'
import { lstatSync, mkdtempSync, readdirSync, readFileSync, rmSync } from 'node:fs'
import { createRequire } from 'node:module'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { openStore, type Store, type StoreOptions } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { mem } from '@alkblobs/engine-mem'
import { sqlite } from '@alkblobs/engine-sqlite'
import { afterEach } from 'vitest'

const ends: (() => unknown)[] = []

afterEach(async () => {
  for (const end of ends.splice(0).reverse()) await end()
})

/** Runs when the test is over, before what was registered earlier. */
export function atEnd(end: () => unknown): void {
  ends.push(end)
}

/** A folder of this test alone, below the system's temporary folder unless told otherwise. */
export function temporaryFolder(below = tmpdir()): string {
  const folder = mkdtempSync(join(below, 'alkblobs-bad-input-'))
  atEnd(() => rmSync(folder, { recursive: true, force: true, maxRetries: 3 }))
  return folder
}

/** Engines of one kind of store, all below a folder. */
export type Tiers = (folder: string) => Pick<StoreOptions, 'kv' | 'large'>

export const STORES: Record<string, Tiers> = {
  mem: () => ({ kv: mem() }),
  'mem + local': folder => ({ kv: mem(), large: local({ root: join(folder, 'large') }) }),
  'sqlite + local': folder => ({
    kv: sqlite({ file: join(folder, 'kv', 'pool.db') }),
    large: local({ root: join(folder, 'large') })
  })
}

/** Opens a store that is closed when the test is over. */
export async function opened(options: StoreOptions): Promise<Store> {
  const store = await openStore(options)
  atEnd(() => store.close().catch(() => {}))
  return store
}

/** Everything below a folder: names, kinds and contents. What SQLite keeps beside its file for readers does not count. */
export function mediumOf(folder: string): Record<string, string> {
  const found: Record<string, string> = {}
  const walk = (path: string, name: string) => {
    for (const child of readdirSync(path)) {
      const [at, as] = [join(path, child), join(name, child)]
      if (/-(shm|wal)$/.test(child)) continue
      if (lstatSync(at).isDirectory()) {
        found[as] = 'folder'
        walk(at, as)
      } else found[as] = createHash('sha256').update(readFileSync(at)).digest('hex')
    }
  }
  walk(folder, '')
  return found
}

export const EMPTY_USAGE = {
  entries: 0,
  bytes: 0,
  perTier: { kv: { entries: 0, bytes: 0 }, large: { entries: 0, bytes: 0 } },
  pins: 0,
  window: 0,
  stages: 0,
  trash: 0
}

/** What a call fails with, however it fails; `undefined` if it does not. */
export async function failureOf(call: () => unknown): Promise<(Error & Record<string, unknown>) | undefined> {
  try {
    await call()
  } catch (error) {
    return error as Error & Record<string, unknown>
  }
  return undefined
}

interface Database {
  exec(sql: string): void
  close(): void
}

/** Changes a pool behind its engine's back, through the very driver that the engine uses. */
export function tamper(file: string, sql: string): void {
  const engine = createRequire(import.meta.url).resolve('@alkblobs/engine-sqlite')
  const Driver = createRequire(engine)('better-sqlite3') as new (file: string) => Database
  const database = new Driver(file)
  try {
    database.exec(sql)
  } finally {
    database.close()
  }
}
