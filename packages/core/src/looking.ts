/** Everything that only looks at the catalog: `stat`, `has`, `list`, `usage`. Creates nothing, protects nothing. */
import type { CatalogUsage, Entry, TierUsage } from './engine.js'
import type { Algorithm, BlobKey } from './key.js'
import type { Lifecycle } from './lifecycle.js'
import { KEY_BATCH, PAGE_SIZE } from './limits.js'
import type { Pool } from './pool.js'

/** What is known of a blob without reading it. */
export interface BlobStat {
  readonly key: BlobKey
  readonly length: number
  readonly algorithm: Algorithm
  readonly tier: 'kv' | 'large'
}

export interface StoreUsage extends TierUsage {
  readonly perTier: Pick<CatalogUsage, 'kv' | 'large'>
  readonly pins: number
  readonly window: number
  readonly stages: number
  readonly trash: number
}

interface LookingParts {
  readonly pool: Pool
  readonly lifecycle: Lifecycle
}

export class Looking {
  readonly #parts: LookingParts

  constructor(parts: LookingParts) {
    this.#parts = parts
  }

  /** One entry or `undefined` for each key, in their order. */
  async find(keys: readonly BlobKey[], signal: AbortSignal | undefined): Promise<(Entry | undefined)[]> {
    const { pool } = this.#parts
    await pool.ready()
    const found: (Entry | undefined)[] = []
    for (let i = 0; i < keys.length; i += KEY_BATCH) {
      found.push(...(await pool.catalog.find(keys.slice(i, i + KEY_BATCH), signal)))
    }
    return found
  }

  /** Page after page; between two of them nothing is held, so a slow consumer is in nobody's way. */
  async *list(after: BlobKey | undefined, signal: AbortSignal | undefined): AsyncGenerator<Entry, void> {
    const { pool, lifecycle } = this.#parts
    for (let cursor = after; ; ) {
      signal?.throwIfAborted()
      const from = cursor
      const page = await lifecycle.run(async () => {
        await pool.ready()
        return pool.catalog.list(from, PAGE_SIZE, signal)
      })
      for (const entry of page) {
        yield entry
        signal?.throwIfAborted()
        lifecycle.assertOpen()
      }
      if (page.length < PAGE_SIZE) return
      cursor = page.at(-1)?.key
    }
  }

  async usage(): Promise<StoreUsage> {
    const { pool } = this.#parts
    await pool.ready()
    const { kv, large, ...rows } = await pool.catalog.usage()
    return { entries: kv.entries + large.entries, bytes: kv.bytes + large.bytes, perTier: { kv, large }, ...rows }
  }
}
