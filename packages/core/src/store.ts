/** The facade: checks what a caller passes, once, and hands it to the room that does the work. */
import { randomBytes } from 'node:crypto'
import { optionsObject } from './arguments.js'
import { type Operation, type OperationTrace, traced } from './channels.js'
import { Collecting } from './collecting.js'
import { type StoreConfig, type StoreMode, windowDelayOf } from './config.js'
import type { BlobContent } from './content.js'
import { backup, type ForkOptions, fork } from './copies.js'
import type { DeleteOutcome } from './delete.js'
import { derivationOf } from './derive.js'
import type { Dispatch } from './dispatch.js'
import type { Durability, Entry, Owner } from './engine.js'
import { closeAll, type EngineCalls } from './engine-calls.js'
import { InvalidArgumentError } from './errors.js'
import { Getting } from './getting.js'
import type { JoinedStore } from './joined.js'
import { type Algorithm, type BlobKey, parseKey, parseKeys } from './key.js'
import { Lifecycle } from './lifecycle.js'
import { type BlobStat, Looking, type StoreUsage } from './looking.js'
import type { MaintainOptions, MaintenanceReport } from './maintain.js'
import type { Pin } from './pin.js'
import { Pins } from './pins.js'
import type { Pool, PoolSettings } from './pool.js'
import { Publisher } from './publish.js'
import type { PutOptions, PutReceipt } from './put-options.js'
import { Putting } from './putting.js'
import {
  type GetOptions,
  type ListOptions,
  maintainOptionsOf,
  type SignalOption,
  signalOf,
  sweepOptionsOf,
  verifyOptionsOf
} from './store-options.js'
import type { StoredBlob } from './stored-blob.js'
import { isTable, type LivenessSource, type Protection, type TableSource } from './sweep/liveness.js'
import type { SweepOptions, SweepReport } from './sweep/report.js'
import type { VerifyOptions, VerifyReport } from './verify.js'
import type { Why } from './why.js'
import type { BlobWriter } from './writer.js'

interface StoreParts {
  readonly config: StoreConfig
  readonly pool: Pool
  readonly dispatch: Dispatch
  readonly calls: readonly EngineCalls[]
}

/** An open pool. Made by `openStore`; every method rejects with `ERR_BLOB_STORE_CLOSED` after `close`. */
export class Store {
  readonly mode: StoreMode
  /** Longest length in bytes that goes to the kv tier, inclusive. */
  readonly threshold: number
  /** What a resolved put survives: that of the weakest tier. */
  readonly durability: Durability
  readonly algorithm: Algorithm
  /** Whether one sweep stages and removes (`inline`), or a later one removes (`durable`). */
  readonly form: 'inline' | 'durable'
  readonly #config: StoreConfig
  readonly #pool: Pool
  readonly #calls: readonly EngineCalls[]
  readonly #lifecycle = new Lifecycle()
  readonly #pins: Pins
  readonly #getting: Getting
  readonly #looking: Looking
  readonly #putting: Putting
  readonly #collecting: Collecting

  /** @internal */
  constructor({ config, pool, dispatch, calls }: StoreParts) {
    this.mode = dispatch.mode
    this.threshold = dispatch.threshold
    this.durability = pool.durability
    this.algorithm = config.algorithm
    this.form = pool.catalog.form
    this.#config = config
    this.#pool = pool
    this.#calls = calls
    const owner = `${config.instanceId}.${randomBytes(8).toString('hex')}` as Owner
    const { pinTtlMs, stageTtlMs } = config
    const life = { expires: this.form === 'durable', revives: config.fleet === undefined }
    this.#pins = new Pins(pool.catalog, { owner, pinTtlMs, stageTtlMs, ...life })
    const derivation = derivationOf(config.algorithm)
    const shared = { config, pool, pins: this.#pins, derivation, lifecycle: this.#lifecycle }
    this.#getting = new Getting(shared)
    this.#looking = new Looking(shared)
    this.#collecting = new Collecting({ ...shared, owner })
    this.#putting = new Putting({
      ...shared,
      dispatch,
      stageTtlMs,
      publisher: new Publisher(shared),
      onPut: () => this.#collecting.scheduleMaintenance(() => this.maintain())
    })
  }

  /**
   * Stores content and answers its key, pinned until the receipt is released. The same content twice is one entry.
   * @throws InvalidContentError, BlobTooLargeError, LengthMismatchError, KeyMismatchError, PutError, EngineError, the
   * signal's own reason, or what the producer threw; nothing is kept then.
   */
  put(content: BlobContent, options?: PutOptions): Promise<PutReceipt> {
    return this.#putting.put(content, options)
  }

  /** The push form of `put`. `await using` discards what was not committed. */
  writer(options?: PutOptions): BlobWriter {
    return this.#putting.writer(options)
  }

  /** The store inside an open transaction of the application's: what both write is committed together. @throws InvalidArgumentError */
  joining(transaction: unknown): Promise<JoinedStore> {
    return this.#run(() => this.#putting.joining(transaction))
  }

  /** The blob, or `undefined` if there is none. Large content is read only as it is consumed. */
  get(key: string, options?: GetOptions): Promise<StoredBlob | undefined> {
    return this.#getting.get(key, options)
  }

  /** Length, algorithm and tier, without reading content; `undefined` if there is no such blob. */
  async stat(key: string, options?: SignalOption): Promise<BlobStat | undefined> {
    const [entry] = await this.#find([key], options)
    return entry && { key: entry.key, length: entry.length, algorithm: this.algorithm, tier: entry.place.tier }
  }

  async has(key: string, options?: SignalOption): Promise<boolean> {
    return (await this.stat(key, options)) !== undefined
  }

  /** Which of these keys have an entry. */
  async hasMany(keys: Iterable<string>, options?: SignalOption): Promise<Map<BlobKey, boolean>> {
    const parsed = parseKeys(keys, this.algorithm)
    const entries = await this.#find(parsed, options)
    return new Map(parsed.map((key, i) => [key, entries[i] !== undefined]))
  }

  /** Every blob in order of its key, from after `after`. Complete for all that exist throughout. */
  async *list(options?: ListOptions): AsyncGenerator<{ key: BlobKey; length: number }, void> {
    const { after } = optionsObject('options', options)
    const from = after === undefined ? undefined : this.#key(after)
    for await (const { key, length } of this.#looking.list(from, signalOf(options))) yield { key, length }
  }

  /**
   * Removes one blob, unless something protects it. Answers whether this call removed it.
   * @throws GcRefusedError (`ERR_BLOB_GC_REFUSED`) when it is pinned, live, or a source cannot say.
   */
  delete(key: string, options?: SignalOption): Promise<boolean> {
    return this.#traced('delete', async trace => {
      const parsed = this.#key(key)
      trace.key = parsed
      return this.#collecting.delete(parsed, signalOf(options))
    })
  }

  /** Removes many, each by its own arbitration, and says what became of each. */
  deleteMany(keys: Iterable<string>, options?: SignalOption): Promise<Map<BlobKey, DeleteOutcome>> {
    return this.#traced('delete', async () =>
      this.#collecting.deleteMany(parseKeys(keys, this.algorithm), signalOf(options))
    )
  }

  /** Protects an entry that exists; `undefined` if there is none. */
  pin(key: string, options?: SignalOption): Promise<Pin | undefined> {
    return this.#traced('pin', async trace => {
      const parsed = this.#key(key)
      trace.key = parsed
      signalOf(options)
      return this.#putting.pin(parsed)
    })
  }

  /** What this store holds pinned, by count. */
  pins(): readonly { readonly key: BlobKey; readonly count: number }[] {
    this.#lifecycle.assertOpen()
    return this.#pins.list()
  }

  /**
   * Registers a source that says which keys are still referenced, until it is removed. A table is looked at first: then the
   * answer is a promise, which rejects if the table cannot be trusted to say what it holds.
   */
  protect(source: LivenessSource): Protection
  protect(source: TableSource): Promise<Protection>
  protect(source: LivenessSource | TableSource): Protection | Promise<Protection> {
    if (isTable(source)) return this.#run(() => this.#collecting.protectTable(source))
    this.#lifecycle.assertOpen()
    return this.#collecting.protect(source)
  }

  /** One garbage collection; what it did, and why it stopped early if it did, is in the report. */
  sweep(options?: SweepOptions): Promise<SweepReport> {
    return this.#traced('sweep', async () => this.#collecting.sweep(sweepOptionsOf(options)))
  }

  /** Reclaims what dead processes left: expired pins and stages, and trash. Needs no liveness source. */
  maintain(options?: MaintainOptions): Promise<MaintenanceReport> {
    return this.#traced('maintain', async () => this.#collecting.maintain(maintainOptionsOf(options)))
  }

  /** Reads everything back and reports what is damaged, missing or unknown. */
  verify(options?: VerifyOptions): Promise<VerifyReport> {
    return this.#traced('verify', async () => this.#collecting.verify(verifyOptionsOf(options)))
  }

  /** How much there is: entries and bytes, in all and by tier. */
  usage(): Promise<StoreUsage> {
    return this.#run(() => this.#looking.usage())
  }

  /** What protects a key, and what a sweep would do with it now. */
  why(key: string): Promise<Why> {
    return this.#run(async () => this.#collecting.why(this.#key(key)))
  }

  /** The pool's settings as they are now: recorded in the pool, the same for every process that uses it. */
  settings(): Promise<PoolSettings> {
    return this.#run(() => this.#pool.settings())
  }

  /** Changes the pool's settings, for every process that uses it. */
  configure(settings: PoolSettings): Promise<void> {
    return this.#run(async () => {
      await this.#pool.setWindowDelay(windowDelayOf(optionsObject('settings', settings).windowDelayMs))
    })
  }

  /**
   * Runs `copy` while nothing is swept or dropped by anybody: copy the catalog first, then the bodies. Puts go on meanwhile. The signal
   * fires when the copy is worthless: the right to hold still was lost, the signal of the options fired, or the store closes.
   * @throws EngineError of kind `conflict` if a sweep is under way, or if the right was lost before the end.
   */
  backup<T>(copy: (signal: AbortSignal) => Promise<T> | T, options?: SignalOption): Promise<T> {
    return this.#run(async () => {
      if (typeof copy !== 'function') throw new InvalidArgumentError('copy', 'a function')
      const signals = [signalOf(options), this.#lifecycle.closing].filter(signal => signal !== undefined)
      return backup(this.#pool, copy, signals)
    })
  }

  /**
   * Makes a copied pool one of its own, with an id of its own, so that it cannot drop bodies of the original. Nobody else may be using
   * the copy. Answers the new id.
   * @throws PoolRefusedError if there is no pool, or if it has large bodies of which nobody said that they are a copy too.
   */
  fork(options?: ForkOptions): Promise<string> {
    return this.#run(async () => fork(this.#pool, optionsObject('options', options)))
  }

  /**
   * Says that the pool is itself although it is found on another server, in another database or on a later timeline than before (after
   * an upgrade, failover or restore), and that nothing else uses its bodies: sweeps and drops may go on.
   */
  acknowledgeMove(): Promise<void> {
    return this.#run(() => this.#pool.acknowledgeMove())
  }

  /** Interrupts what waits for user code, lets engine calls finish, releases every pin and frees everything. Idempotent. */
  close(): Promise<void> {
    this.#collecting.close()
    return this.#lifecycle.close(this.#config.drainMs, async () => {
      // Pins that cannot be released now expire by themselves; the media are closed in any case.
      await this.#pins.close().catch(() => undefined)
      await closeAll(this.#calls)
    })
  }

  [Symbol.asyncDispose](): Promise<void> {
    return this.close()
  }

  #run<T>(operation: () => Promise<T>): Promise<T> {
    return this.#lifecycle.run(operation)
  }

  #traced<T>(operation: Operation, run: (trace: OperationTrace) => Promise<T>): Promise<T> {
    return this.#run(() => traced(operation, this.durability, run))
  }

  #key(key: string): BlobKey {
    return parseKey(key, this.algorithm)
  }

  #find(keys: readonly string[], options: SignalOption | undefined): Promise<(Entry | undefined)[]> {
    return this.#run(async () => {
      const parsed = keys.map(key => this.#key(key))
      return this.#looking.find(parsed, signalOf(options))
    })
  }
}
