/** Catalogs under test, opened more than once over one medium, beside their model; and short names for what steps say often. */
import { createHash } from 'node:crypto'
import {
  type BlobKey,
  type Call,
  type Catalog,
  type Entry,
  formatKey,
  type Lease,
  type Locator,
  type Owner,
  type PinRow,
  type PoolId,
  type PoolRecord,
  PROTOCOL_VERSION,
  type StageId
} from '@alkblobs/core/engine'
import { equal } from '../../expect.js'
import { CatalogPool, type EntryRow } from './catalog-pool.js'

/** A virgin medium, opened once or more often; each opening is a catalog of its own. */
export interface CatalogUnderTest {
  readonly catalogs: readonly Catalog[]
  /** Closes them all and removes the medium. */
  close(): Promise<void>
}

export const HOUR_MS = 3_600_000
/** Keys, stages and owners that steps choose from. */
export const KEYS = 4
export const STAGES = 5
export const OWNERS = 2
/** Long enough for any machine: a deadline is not what is tried. */
const CALL_LIMIT_MS = 30_000

/** Of a stage that is over when it begins. */
export const OVER_MS = -1

export const call = (): Call => ({ deadlineMs: performance.now() + CALL_LIMIT_MS })
export const keyOf = (n: number): BlobKey => formatKey('sha256', createHash('sha256').update(String(n)).digest())
export const stageOf = (n: number) => `${n}`.padStart(32, 'a') as StageId
export const locatorOf = (n: number) => `${stageOf(n)}.sealed` as Locator
/** An entry as a catalog answers it. */
export const entryOf = (n: number, entry: EntryRow): Entry => ({ key: keyOf(n), ...entry })
export const rowOf = (owner: number, generation: number): PinRow => ({ owner: `owner-${owner}` as Owner, generation })
export const ttlOf = (isAlive: boolean) => (isAlive ? HOUR_MS : OVER_MS)

const record = (windowDelayMs: number): PoolRecord => ({
  poolId: 'pool' as PoolId,
  protocol: PROTOCOL_VERSION,
  algorithm: 'sha256',
  windowDelayMs,
  bodiesClaimed: false
})

export class CatalogWorld {
  readonly pool: CatalogPool
  readonly #catalogs: readonly Catalog[]
  /** The lease under way, and the catalog it was taken of. */
  lease: { readonly of: number; readonly held: Lease } | undefined
  /** Stages whose name was used: a locator is never used twice. */
  readonly published = new Set<number>()
  generation = 0

  private constructor(catalogs: readonly Catalog[], pool: CatalogPool) {
    this.#catalogs = catalogs
    this.pool = pool
  }

  static async begin({ catalogs }: CatalogUnderTest, windowDelayMs: number): Promise<CatalogWorld> {
    const [first] = catalogs
    if (first === undefined) throw new TypeError('no catalog was opened')
    equal(await first.meta.read(call()), undefined, 'a virgin medium has no record')
    equal(await first.meta.compareAndSet(undefined, record(windowDelayMs), call()), true, 'the record is written')
    return new CatalogWorld(catalogs, new CatalogPool(first.form, windowDelayMs))
  }

  at(by: number): Catalog {
    return this.#catalogs[by % this.#catalogs.length] as Catalog
  }

  /** The catalog that holds the lease: whoever took it sweeps. */
  get sweeper(): Catalog {
    return this.at(this.lease?.of ?? 0)
  }

  /** The number behind a key that a catalog answered. */
  numberOf(key: BlobKey): number {
    return Array.from({ length: KEYS }, (_, n) => n).find(n => keyOf(n) === key) ?? -1
  }

  sortedKeys(): number[] {
    return [...this.pool.entries.keys()].sort((one, other) => (keyOf(one) < keyOf(other) ? -1 : 1))
  }

  async configure(by: number, windowDelayMs: number): Promise<void> {
    const { pool } = this
    const catalog = this.at(by)
    const wrong = await catalog.meta.compareAndSet(record(pool.windowDelayMs + 1), record(windowDelayMs), call())
    equal(wrong, false, 'a record is replaced only by who knows it')
    const right = await catalog.meta.compareAndSet(record(pool.windowDelayMs), record(windowDelayMs), call())
    equal(right, true, 'a record is replaced by who knows it')
    equal(await this.at(by + 1).meta.read(call()), record(windowDelayMs), 'a record is read as it was written')
    pool.windowDelayMs = windowDelayMs
  }
}
