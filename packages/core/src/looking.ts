/** Everything that only looks: `get`, `stat`, `has`, `list`, `usage`. Creates nothing, protects nothing. */
import type { OperationTrace } from './channels.js'
import type { Derivation } from './derive.js'
import type { CatalogUsage, Entry, FoundEntry, TierUsage } from './engine.js'
import type { Algorithm, BlobKey } from './key.js'
import type { Lifecycle } from './lifecycle.js'
import { KEY_BATCH, PAGE_SIZE } from './limits.js'
import type { Pool } from './pool.js'
import { assertLength } from './reading.js'
import { StoredBlob } from './stored-blob.js'

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
  readonly derivation: Derivation
  readonly lifecycle: Lifecycle
}

interface HowToRead {
  readonly signal: AbortSignal | undefined
  readonly verify: boolean
}

export class Looking {
  readonly #parts: LookingParts

  constructor(parts: LookingParts) {
    this.#parts = parts
  }

  async get(key: BlobKey, how: HowToRead, trace: OperationTrace): Promise<StoredBlob | undefined> {
    const { pool } = this.#parts
    const waiting = pool.ready()
    if (waiting !== undefined) await waiting
    const found = await pool.catalog.read(key, how.signal)
    if (found === undefined) return undefined
    trace.length = found.entry.length
    trace.tier = found.entry.place.tier
    return this.#blob(found, how)
  }

  /** The same, where the catalog has it at once; `undefined` where it has to be waited for. A call costs more than such a read does. */
  getNow(key: BlobKey, how: HowToRead): StoredBlob | undefined {
    const { pool } = this.#parts
    if (pool.ready() !== undefined) return undefined
    const found = pool.catalog.readNow(key)
    return found && this.#blob(found, how)
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

  #blob({ entry, body }: FoundEntry, { signal, verify }: HowToRead): StoredBlob {
    const { pool, derivation, lifecycle } = this.#parts
    assertLength(entry)
    return new StoredBlob({ pool, derivation, found: { entry, body }, verify, signal, lifecycle })
  }
}
