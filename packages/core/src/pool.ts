/**
 * The pool behind a store: its record, the binding of its media to it, and where entries lie.
 *
 * Nothing is made before the first write. From then on catalog and body store carry the same pool id, and a store that
 * finds another one refuses: bodies of one pool must never be judged by the catalog of another.
 */
import type { CheckedBodies } from './checked-bodies.js'
import type { CheckedCatalog } from './checked-catalog.js'
import type { StoreConfig } from './config.js'
import type { Claim, Durability, Lease, PoolId, PoolRecord } from './engine.js'
import { PoolRefusedError } from './errors.js'
import { Home } from './home.js'
import { PROTOCOL_VERSION, WINDOW_DELAY_MS } from './limits.js'
import { Once } from './once.js'
import { assertUsable, assertWritable, forkOf, halfForked, isBound, isSameRecord, newPoolId } from './pool-record.js'
import { recover } from './recover.js'

export interface PoolMedia {
  readonly catalog: CheckedCatalog
  readonly bodies: CheckedBodies | undefined
  /** The catalog dies with the process: it is rebuilt from the bodies, and one process at a time may hold them. */
  readonly volatile: boolean
  readonly durability: Durability
}

export interface PoolSettings {
  /** Shortest time from staging to removal, in milliseconds. */
  readonly windowDelayMs: number
}

export class Pool {
  readonly catalog: CheckedCatalog
  readonly durability: Durability
  /** Delay before published bodies may be dropped; a volatile catalog forgets its trash, so it cannot wait. */
  readonly trashDelayMs: number
  readonly volatile: boolean
  readonly #bodies: CheckedBodies | undefined
  readonly #config: StoreConfig
  readonly #home: Home
  readonly #recovered = new Once()
  readonly #established = new Once()
  #record: PoolRecord | undefined

  constructor(media: PoolMedia, config: StoreConfig) {
    this.catalog = media.catalog
    this.#bodies = media.bodies
    this.volatile = media.volatile
    this.durability = media.durability
    this.#config = config
    this.trashDelayMs = media.volatile ? 0 : config.trashDelayMs
    this.#home = new Home(media.catalog)
  }

  get hasBodies(): boolean {
    return this.#bodies !== undefined
  }

  /** The body store. @throws PoolRefusedError when an entry lies in a large tier this store was opened without. */
  get bodies(): CheckedBodies {
    if (this.#bodies !== undefined) return this.#bodies
    throw new PoolRefusedError(
      'media',
      'the pool keeps large bodies, and the store was opened without its large engine'
    )
  }

  /** Looks at the media without changing them, and refuses a pool that is not ours to use. Called once, at open. */
  async inspect(): Promise<void> {
    // In this order: a claim is made after its record, so whoever sees the claim finds the record.
    const claim = await this.#bodies?.claimed()
    const record = await this.catalog.readRecord()
    if (record !== undefined) this.#adopt(record)
    if (claim === undefined) {
      // The first put of another store may have come between the two looks.
      if (record !== undefined && isBound(record) && (await this.#bodies?.claimed()) === undefined)
        this.#assertNotAway(record)
      return
    }
    if (claim.mode !== this.#claimMode) {
      throw new PoolRefusedError(
        'media',
        `the large tier belongs to a pool whose catalog is ${claim.mode === 'shared' ? 'durable' : 'in memory'}`
      )
    }
    if (this.volatile) return
    // A fork that stopped half-way may be read, and forked again.
    if (record?.forkedFrom !== undefined && claim.poolId === record.forkedFrom) return
    if (claim.poolId !== record?.poolId)
      throw new PoolRefusedError('media', 'the large tier belongs to another pool than the kv tier')
  }

  /**
   * Before a read: a volatile catalog first learns what its bodies hold. Nothing is made on a virgin medium. `undefined` where there is
   * nothing to wait for.
   */
  ready(): Promise<void> | undefined {
    if (!this.volatile || this.#bodies === undefined) return undefined
    if (this.#established.isBegun) return this.establish()
    return this.#recovered.run(() => this.#recoverIfClaimed())
  }

  /** Before a write: the pool exists and its media are bound to it. `undefined` where there is nothing to wait for. */
  establish(): Promise<void> | undefined {
    return this.#established.run(() => this.#establish())
  }

  /** The pool's record, `undefined` while there is no pool. Read again each time: settings may change under us. */
  async record(): Promise<PoolRecord | undefined> {
    const record = await this.catalog.readRecord()
    if (record !== undefined) this.#adopt(record)
    return record
  }

  /** Whether the catalog knows a pool: `false` for a virgin medium, which maintenance must not bring to life. */
  async exists(): Promise<boolean> {
    await this.ready()
    return (await this.record()) !== undefined
  }

  /** What the pool says, or what it would say if it were made now. */
  async settings(): Promise<PoolSettings> {
    const record = await this.record()
    return { windowDelayMs: record?.windowDelayMs ?? this.#config.windowDelayMs ?? WINDOW_DELAY_MS }
  }

  /** Changes the pool's window delay. */
  async setWindowDelay(windowDelayMs: number): Promise<void> {
    await this.establish()
    await this.#change(now => ({ ...now, windowDelayMs }))
  }

  /**
   * The right to remove; `undefined` while somebody else has it.
   * @throws PoolRefusedError (`moved`) where the pool may be a copy of one that still uses its bodies.
   */
  async lease(): Promise<Lease | undefined> {
    const lease = await this.catalog.lease()
    if (lease === undefined) return undefined
    try {
      const record = await this.record()
      if (record !== undefined) await this.#home.assertAt(record)
      return lease
    } catch (error) {
      await this.catalog.releaseLease(lease)
      throw error
    }
  }

  /** Says that the pool is itself, wherever it is found now. */
  async acknowledgeMove(): Promise<void> {
    await this.establish()
    const here = await this.#home.here()
    await this.#change(now => ({ ...now, ...here }))
  }

  /**
   * Makes this copy a pool of its own: a new id, and the bodies' claim taken over from the original's, or made on a fresh medium where
   * the pool had none. `areCopied`: somebody who knows says that these bodies are a copy. A fork that stops half-way is completed by
   * another, for only its caller can say that.
   * @throws PoolRefusedError (`media`) if the pool has bodies that nobody called a copy, or that are not here.
   */
  async fork(areCopied: boolean): Promise<PoolId> {
    const here = await this.#home.here()
    const poolId = newPoolId()
    this.#established.forget()
    const claimed = (await this.#bodies?.claimed())?.poolId
    for (;;) {
      // Forked by somebody else meanwhile, it is another pool than the one this store opened, and refused as that.
      const now = (await this.record()) as PoolRecord
      assertWritable(now)
      const next = { ...forkOf(now, claimed, areCopied), ...here, poolId }
      if (!(await this.#replace(now, next))) continue
      this.#record = next
      if (next.forkedFrom !== undefined) await this.#takeOver(next.forkedFrom, poolId)
      break
    }
    await this.establish()
    return poolId
  }

  get #claimMode(): Claim['mode'] {
    return this.volatile ? 'exclusive' : 'shared'
  }

  async #establish(): Promise<void> {
    const claimed = this.volatile ? await this.#bodies?.claimed() : undefined
    const record = await this.#createRecord(claimed?.poolId)
    assertWritable(record)
    if (this.#bodies === undefined) return
    await this.#bind(record)
    if (this.volatile) await recover(this.catalog, this.#bodies, this.#config.stageTtlMs)
  }

  /** Binds the body store to the pool, and notes that it is bound. A medium that lost its claim since is not bound anew. */
  async #bind(record: PoolRecord): Promise<void> {
    if (isBound(record)) {
      const claimed = await this.bodies.claimed()
      if (claimed === undefined) this.#assertNotAway(record)
      if (record.forkedFrom !== undefined && claimed?.poolId !== record.poolId) throw halfForked()
    }
    await this.#claim(record.poolId)
    await this.#change(({ forkedFrom: _, ...now }) => ({ ...now, bodiesClaimed: true }))
  }

  /** A copied medium still carries the claim of the original. */
  async #takeOver(original: PoolId, poolId: PoolId): Promise<void> {
    const taken = await this.bodies.reclaim(original, { poolId, mode: this.#claimMode })
    if (taken === undefined)
      throw new PoolRefusedError('media', 'the large tier cannot be taken over from another pool')
  }

  async #createRecord(poolId: PoolId | undefined): Promise<PoolRecord> {
    for (let attempt = 0; attempt < CREATE_ATTEMPTS; attempt++) {
      const there = await this.record()
      if (there !== undefined) return there
      const fresh: PoolRecord = {
        poolId: poolId ?? newPoolId(),
        protocol: PROTOCOL_VERSION,
        algorithm: this.#config.algorithm,
        windowDelayMs: this.#config.windowDelayMs ?? WINDOW_DELAY_MS,
        bodiesClaimed: false,
        ...(await this.#home.here())
      }
      if (!(await this.catalog.replaceRecord(undefined, fresh))) continue
      // From now on it is the pool's record that counts, whoever changes its settings before this store looks again.
      this.#adopt(fresh)
      return fresh
    }
    throw new PoolRefusedError(
      'foreign',
      'the kv tier neither has a pool nor lets one be made; it may be damaged: restore it'
    )
  }

  /** Changes the record from whatever it is now; others may be changing it at the same time. */
  async #change(next: (now: PoolRecord) => PoolRecord): Promise<void> {
    for (;;) {
      const now = (await this.record()) as PoolRecord
      assertWritable(now)
      const wanted = next(now)
      if (isSameRecord(now, wanted) || (await this.catalog.replaceRecord(now, wanted))) return
    }
  }

  /** Where the answer is lost nobody knows which pool this is: the next look says. */
  async #replace(now: PoolRecord, next: PoolRecord): Promise<boolean> {
    try {
      return await this.catalog.replaceRecord(now, next)
    } catch (error) {
      this.#record = undefined
      throw error
    }
  }

  async #claim(poolId: PoolId): Promise<void> {
    const claim = await this.bodies.claim({ poolId, mode: this.#claimMode })
    if (claim === 'held')
      throw new PoolRefusedError(
        'held',
        'another store, in this process or another, has this in-memory pool open; close it there first'
      )
    if (claim.poolId !== poolId || claim.mode !== this.#claimMode) {
      throw new PoolRefusedError('media', 'the large tier belongs to another pool than the kv tier')
    }
  }

  /** What a volatile catalog does before its first read: nothing where nothing was ever written, else a full start. */
  async #recoverIfClaimed(): Promise<void> {
    if ((await this.bodies.claimed()) !== undefined) await this.establish()
  }

  #adopt(record: PoolRecord): void {
    assertUsable(record, this.#record, this.#config)
    this.#record = record
  }

  /** An unmounted folder looks like an empty one; taking it for a new one would make every large body look lost. */
  #assertNotAway(record: PoolRecord): void {
    if (!isBound(record) || this.#bodies === undefined) return
    const message =
      'the large tier of this pool is away: its claim is missing; is the folder mounted, and the right one?'
    throw new PoolRefusedError('media', message)
  }
}

/** Each attempt that fails means that somebody else has just made the pool, so the next look finds it. */
const CREATE_ATTEMPTS = 3
