/** The only caller of what judges tables of the application, where a catalog can. */
import type { Catalog, SqlSource } from './engine.js'
import type { EngineCalls } from './engine-calls.js'
import type { BlobKey } from './key.js'

const READ = { readOnly: true } as const

export class CheckedTables {
  readonly #liveness: NonNullable<Catalog['sqlLiveness']>
  readonly #calls: EngineCalls

  constructor(liveness: NonNullable<Catalog['sqlLiveness']>, calls: EngineCalls) {
    this.#liveness = liveness
    this.#calls = calls
  }

  register(source: SqlSource): Promise<void> {
    return this.#calls.run('sqlLiveness.register', READ, call => this.#liveness.register(source, call))
  }

  unregister(source: SqlSource): void {
    this.#liveness.unregister(source)
  }

  /** The registered tables that reference the key. */
  liveBy(key: BlobKey): Promise<readonly string[]> {
    return this.#calls.run('sqlLiveness.liveBy', { readOnly: true, key }, call => this.#liveness.liveBy(key, call))
  }
}
