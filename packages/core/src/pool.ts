/**
 * The pool behind a store: its record, the binding of its media to it, and where entries lie.
 *
 * Nothing is made before the first write. From then on catalog and body store carry the same pool id, and a store that
 * finds another one refuses: bodies of one pool must never be judged by the catalog of another.
 */
import { randomBytes } from 'node:crypto'
import type { CheckedBodies } from './checked-bodies.js'
import type { CheckedCatalog } from './checked-catalog.js'
import type { StoreConfig } from './config.js'
import type { Claim, Durability, Locator, PoolId, PoolRecord, StageId } from './engine.js'
import { PoolRefusedError } from './errors.js'
import type { BlobKey } from './key.js'
import { PAGE_SIZE, PROTOCOL_VERSION, WINDOW_DELAY_MS } from './limits.js'

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
  #record: PoolRecord | undefined
  #ready: Promise<void> | undefined
  #established: Promise<void> | undefined

  constructor(media: PoolMedia, config: StoreConfig) {
    this.catalog = media.catalog
    this.#bodies = media.bodies
    this.volatile = media.volatile
    this.durability = media.durability
    this.#config = config
    this.trashDelayMs = media.volatile ? 0 : config.trashDelayMs
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
      if (record?.bodiesClaimed === true && (await this.#bodies?.claimed()) === undefined) this.#assertNotAway(record)
      return
    }
    if (claim.mode !== this.#claimMode) {
      throw new PoolRefusedError(
        'media',
        `the large tier belongs to a pool whose catalog is ${claim.mode === 'shared' ? 'durable' : 'in memory'}`
      )
    }
    if (this.volatile) return
    if (claim.poolId !== record?.poolId)
      throw new PoolRefusedError('media', 'the large tier belongs to another pool than the kv tier')
  }

  /** Before a read: a volatile catalog first learns what its bodies hold. Nothing is made on a virgin medium. */
  ready(): Promise<void> {
    if (!this.volatile || this.#bodies === undefined) return DONE
    if (this.#established !== undefined) return this.#established
    this.#ready ??= retryable(this.#recoverIfClaimed(), () => {
      this.#ready = undefined
    })
    return this.#ready
  }

  /** Before a write: the pool exists and its media are bound to it. */
  establish(): Promise<void> {
    this.#established ??= retryable(this.#establish(), () => {
      this.#established = undefined
    })
    return this.#established
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

  get #claimMode(): Claim['mode'] {
    return this.volatile ? 'exclusive' : 'shared'
  }

  async #establish(): Promise<void> {
    const claimed = this.volatile ? await this.#bodies?.claimed() : undefined
    const record = await this.#createRecord(claimed?.poolId)
    this.#assertWritable(record)
    if (this.#bodies === undefined) return
    await this.#bind(record)
    if (this.volatile) await this.#recover()
  }

  /** Binds the body store to the pool, and notes that it is bound. A medium that lost its claim since is not bound anew. */
  async #bind(record: PoolRecord): Promise<void> {
    if (record.bodiesClaimed && (await this.bodies.claimed()) === undefined) this.#assertNotAway(record)
    await this.#claim(record.poolId)
    await this.#change(now => ({ ...now, bodiesClaimed: true }))
  }

  async #createRecord(poolId: PoolId | undefined): Promise<PoolRecord> {
    for (let attempt = 0; attempt < CREATE_ATTEMPTS; attempt++) {
      const there = await this.record()
      if (there !== undefined) return there
      const fresh: PoolRecord = {
        poolId: poolId ?? (randomBytes(16).toString('hex') as PoolId),
        protocol: PROTOCOL_VERSION,
        algorithm: this.#config.algorithm,
        windowDelayMs: this.#config.windowDelayMs ?? WINDOW_DELAY_MS,
        bodiesClaimed: false
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
      this.#assertWritable(now)
      const wanted = next(now)
      if (isSame(now, wanted) || (await this.catalog.replaceRecord(now, wanted))) return
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

  /**
   * Enters every whole body into the volatile catalog, through the very steps of a put: stage, then publish. The first body
   * of a key becomes the entry; others, and halves, end as trash.
   */
  async #recover(): Promise<void> {
    let after: string | undefined
    do {
      const { found, next } = await this.bodies.scan(after, PAGE_SIZE)
      const known = found.length === 0 ? [] : await this.catalog.known(found)
      for (const [i, { stage, sealed }] of found.entries()) {
        if (known[i] === true) continue
        await this.catalog.stage([{ id: stage, ttlMs: this.#config.stageTtlMs }])
        const entered = sealed?.whole === true && (await this.#enter(stage, sealed.key, sealed.length, sealed.locator))
        if (!entered) await this.catalog.unstage([stage])
      }
      after = next
    } while (after !== undefined)
  }

  async #enter(stage: StageId, key: BlobKey, length: number, locator: Locator): Promise<boolean> {
    const bytes = { kind: 'staged', stage, locator } as const
    const { outcome } = await this.catalog.publish({ key, length, bytes, trashDelayMs: 0 })
    return outcome === 'created'
  }

  #adopt(record: PoolRecord): void {
    if (record.algorithm !== this.#config.algorithm) {
      throw new PoolRefusedError(
        'derivation',
        `the pool derives its keys with ${record.algorithm}; open it with { derivation: '${record.algorithm}' }`
      )
    }
    const known = this.#record
    if (known !== undefined && known.poolId !== record.poolId) {
      throw new PoolRefusedError('media', 'the medium now holds another pool than the one this store opened')
    }
    const asked = this.#config.windowDelayMs
    if (known === undefined && asked !== undefined && asked !== record.windowDelayMs) {
      throw new PoolRefusedError(
        'settings',
        `the pool's window delay is ${record.windowDelayMs} ms, not ${asked} ms; leave the option out, or change it with store.configure({ windowDelayMs: ${asked} })`
      )
    }
    this.#record = record
  }

  /** An unmounted folder looks like an empty one; taking it for a new one would make every large body look lost. */
  #assertNotAway(record: PoolRecord): void {
    if (!record.bodiesClaimed || this.#bodies === undefined) return
    const message =
      'the large tier of this pool is away: its claim is missing; is the folder mounted, and the right one?'
    throw new PoolRefusedError('media', message)
  }

  #assertWritable(record: PoolRecord): void {
    if (record.protocol > PROTOCOL_VERSION) {
      throw new PoolRefusedError(
        'newer',
        'the pool was made by a later version of this library; it may be read, upgrade to write to it'
      )
    }
  }
}

/** Each attempt that fails means that somebody else has just made the pool, so the next look finds it. */
const CREATE_ATTEMPTS = 3

const DONE = Promise.resolve()

function isSame(one: PoolRecord, other: PoolRecord): boolean {
  return one.windowDelayMs === other.windowDelayMs && one.bodiesClaimed === other.bodiesClaimed
}

/** A memoised step whose failure is forgotten, so that the next caller tries again. */
function retryable(step: Promise<void>, forget: () => void): Promise<void> {
  return step.catch(error => {
    forget()
    throw error
  })
}
