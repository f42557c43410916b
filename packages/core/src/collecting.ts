/** Everything that may remove: sources, sweeps, deletes, maintenance, verification, and the question why. */
import type { StoreConfig } from './config.js'
import { type DeleteOutcome, type Deletion, deleteKeys } from './delete.js'
import type { Derivation } from './derive.js'
import type { Owner } from './engine.js'
import { GcRefusedError, InvalidArgumentError } from './errors.js'
import type { BlobKey } from './key.js'
import type { Lifecycle } from './lifecycle.js'
import { DELETE_BATCH } from './limits.js'
import { type MaintainOptions, Maintenance, type MaintenanceReport } from './maintain.js'
import type { Pins } from './pins.js'
import type { Pool } from './pool.js'
import {
  assertSource,
  assertTable,
  type LivenessSource,
  LivenessView,
  type Protection,
  type TableSource
} from './sweep/liveness.js'
import type { SweepOptions, SweepReport } from './sweep/report.js'
import { sweep } from './sweep/sweep.js'
import { type VerifyOptions, type VerifyReport, verify } from './verify.js'
import { type Why, why } from './why.js'

interface CollectingParts {
  readonly config: StoreConfig
  readonly pool: Pool
  readonly pins: Pins
  readonly owner: Owner
  readonly derivation: Derivation
  readonly lifecycle: Lifecycle
}

export class Collecting {
  readonly #parts: CollectingParts
  readonly #maintenance: Maintenance
  readonly #sources = new Map<Protection, LivenessSource>()
  readonly #tables = new Map<Protection, TableSource>()
  #timer: NodeJS.Timeout | undefined

  constructor(parts: CollectingParts) {
    this.#parts = parts
    this.#maintenance = new Maintenance(parts.pool)
  }

  /** A table is looked at first, so that a misspelt name is noticed now and not by a sweep. */
  async protectTable(source: TableSource): Promise<Protection> {
    assertTable(source)
    const { catalog } = this.#parts.pool
    if (catalog.tables === undefined)
      throw new InvalidArgumentError('source', `no table: ${catalog.name} cannot judge tables`)
    const { table, column } = source
    await catalog.tables.register({ table, column })
    const protection = { name: `${table}.${column}`, remove: () => this.#unprotectTable(protection) }
    this.#tables.set(protection, { table, column })
    return protection
  }

  protect(source: LivenessSource): Protection {
    assertSource(source)
    const protection = { name: source.name, remove: () => void this.#sources.delete(protection) }
    this.#sources.set(protection, source)
    return protection
  }

  sweep(options: SweepOptions): Promise<SweepReport> {
    const { pool, pins } = this.#parts
    const signals = [options.signal, this.#closing].filter(signal => signal !== undefined)
    return sweep({ pool, pins, view: this.#view(options.signal), options, signals })
  }

  /** @throws GcRefusedError when something protects the key. */
  async delete(key: BlobKey, signal: AbortSignal | undefined): Promise<boolean> {
    const { outcomes, cause } = await this.#delete([key], signal)
    const outcome = outcomes.get(key) as DeleteOutcome
    if (outcome === 'deleted' || outcome === 'absent') return outcome === 'deleted'
    throw new GcRefusedError(key, outcome, cause)
  }

  async deleteMany(keys: readonly BlobKey[], signal: AbortSignal | undefined): Promise<Map<BlobKey, DeleteOutcome>> {
    const all = new Map<BlobKey, DeleteOutcome>()
    for (let i = 0; i < keys.length; i += DELETE_BATCH) {
      signal?.throwIfAborted()
      const { outcomes } = await this.#delete(keys.slice(i, i + DELETE_BATCH), signal)
      for (const [key, outcome] of outcomes) all.set(key, outcome)
    }
    return all
  }

  maintain(options: MaintainOptions): Promise<MaintenanceReport> {
    return this.#maintenance.run(options, this.#closing)
  }

  verify(options: VerifyOptions): Promise<VerifyReport> {
    const { pool, pins, derivation } = this.#parts
    return verify({ pool, pins, derivation, view: this.#view(options.signal), closing: this.#closing }, options)
  }

  why(key: BlobKey): Promise<Why> {
    const { pool, pins, owner } = this.#parts
    return why({ pool, pins, owner, view: this.#view() }, key)
  }

  /** Once for each stage TTL in which something was put, so that a dead writer's leavings end without anybody's help. */
  scheduleMaintenance(run: () => Promise<unknown>): void {
    this.#timer ??= setTimeout(() => {
      this.#timer = undefined
      run().catch(nextTime)
    }, this.#parts.config.stageTtlMs).unref()
  }

  close(): void {
    clearTimeout(this.#timer)
  }

  /** The last registration of a table takes it out of the catalog's judgement. */
  #unprotectTable(protection: Protection): void {
    const source = this.#tables.get(protection)
    if (source === undefined) return
    this.#tables.delete(protection)
    const isLeft = [...this.#tables.values()].some(
      ({ table, column }) => table === source.table && column === source.column
    )
    if (!isLeft) this.#parts.pool.catalog.tables?.unregister(source)
  }

  get #closing(): AbortSignal {
    return this.#parts.lifecycle.closing
  }

  #delete(keys: readonly BlobKey[], signal: AbortSignal | undefined): Promise<Deletion> {
    const { pool, pins } = this.#parts
    return deleteKeys(
      { pool, pins, view: this.#view(signal) },
      keys.map(key => ({ key }))
    )
  }

  /** The sources as they are now; undefined if there are none. */
  #view(signal?: AbortSignal): LivenessView | undefined {
    if (this.#sources.size + this.#tables.size === 0) return undefined
    return new LivenessView(this.#sources.values(), this.#parts.config.algorithm, [signal, this.#closing])
  }
}

/** Maintenance that nobody asked for has nobody to report to but its channel; the next run does its work. */
function nextTime(): void {}
