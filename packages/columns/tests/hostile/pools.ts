/** Pools of sqlite + local in a folder of their own, for tests that lay hands on the medium, and the files of such a pool. */
import { lstatSync, readdirSync } from 'node:fs'
import { join } from 'node:path'
import { openStore, type Store, type StoreOptions } from '@alkblobs/core'
import type { EngineDefinition } from '@alkblobs/core/engine'
import { local } from '@alkblobs/engine-local'
import { sqlite } from '@alkblobs/engine-sqlite'
import { atEnd, temporaryFolder } from '../bad-input/stores.js'

export interface HostilePool {
  readonly folder: string
  readonly file: string
  readonly root: string
  /** A store over the pool, closed when the test is over; `wrapLarge` stands between it and its large engine. */
  open(
    options?: Partial<StoreOptions> & { wrapLarge?: (definition: EngineDefinition) => EngineDefinition }
  ): Promise<Store>
}

/** A pool that nobody has opened yet: contents of more than 10 bytes are large, and nothing waits for any delay. */
export function hostilePool(folder = temporaryFolder()): HostilePool {
  const file = join(folder, 'kv.db')
  const root = join(folder, 'large')
  return {
    folder,
    file,
    root,
    async open({ wrapLarge = (definition: EngineDefinition) => definition, ...options } = {}) {
      const tuned = { threshold: 10, windowDelayMs: 0, trashDelayMs: 0, ...options }
      const store = await openStore({ kv: sqlite({ file }), large: wrapLarge(local({ root })), ...tuned })
      atEnd(() => store.close().catch(() => {}))
      return store
    }
  }
}

/** The paths of everything below a folder that is no folder. */
export function filesBelow(folder: string): string[] {
  return readdirSync(folder).flatMap(name => {
    const path = join(folder, name)
    return lstatSync(path).isDirectory() ? filesBelow(path) : [path]
  })
}

/** The file of a body. */
export function bodyOf({ root }: HostilePool, key: string): string {
  const digest = key.slice(key.indexOf(':') + 1)
  const [path, more] = filesBelow(root).filter(file => file.includes(`.${digest}.`))
  if (path === undefined || more !== undefined) throw new Error(`not one body of ${key}`)
  return path
}
