/**
 * The only caller of catalogs: every call with its deadline, every answer held against the contract before it is used.
 */

import { CheckedJoin, identityOf } from './checked-server.js'
import { CheckedTables } from './checked-tables.js'
import type {
  CandidatePage,
  Catalog,
  CatalogUsage,
  DeleteMark,
  DropRecord,
  DuePage,
  Engine,
  Entry,
  Explanation,
  Found,
  FoundEntry,
  Lease,
  Lost,
  Maintenance,
  PinId,
  PinRequest,
  PoolRecord,
  Publication,
  PublishOutcome,
  Removal,
  RemoveOutcome,
  RenewRequest,
  ServerIdentity,
  StageId,
  StageIntent,
  Trashed
} from './engine.js'
import type { CallOptions, EngineCalls } from './engine-calls.js'
import { EngineError } from './errors.js'
import type { BlobKey } from './key.js'
import { damagedField } from './pool-record.js'

const READ = { readOnly: true } as const

export class CheckedCatalog {
  readonly #catalog: Catalog
  readonly #calls: EngineCalls
  readonly form: Catalog['form']
  readonly inlineLengthMax: number
  /** Whether the catalog can have entries at once. */
  readonly answersNow: boolean

  constructor(engine: Engine, catalog: Catalog, calls: EngineCalls) {
    this.#catalog = catalog
    this.#calls = calls
    this.form = catalog.form
    this.inlineLengthMax = catalog.inlineLengthMax
    this.answersNow = catalog.readNow !== undefined
    this.name = engine.name
    const { sqlLiveness } = catalog
    if (sqlLiveness !== undefined) this.tables = new CheckedTables(sqlLiveness, calls)
  }

  readonly name: string
  /** Present where tables of the application can be judged. */
  readonly tables?: CheckedTables

  /** @throws EngineError `corrupt` for a record that cannot be one of ours: nobody may sweep by a delay that is none. */
  async readRecord(): Promise<PoolRecord | undefined> {
    const record = await this.#calls.run('meta.read', READ, call => this.#catalog.meta.read(call))
    const damaged = record && damagedField(record)
    if (damaged === undefined) return record
    const advice = `the pool's record is damaged (${damaged}); restore the catalog from a backup`
    throw new EngineError(this.name, 'meta.read', 'corrupt', advice)
  }

  replaceRecord(expected: PoolRecord | undefined, next: PoolRecord): Promise<boolean> {
    return this.#calls.run('meta.compareAndSet', {}, call => this.#catalog.meta.compareAndSet(expected, next, call))
  }

  async find(keys: readonly BlobKey[], signal?: AbortSignal): Promise<readonly (Entry | undefined)[]> {
    const options: CallOptions = { readOnly: true, signal, key: keys.length === 1 ? keys[0] : undefined }
    const entries = await this.#calls.run('find', options, call => this.#catalog.find(keys, call))
    this.#aligned('find', 'ENG-FIND-1', keys, entries)
    for (const [i, entry] of entries.entries()) if (entry !== undefined) this.#isOf('find', keys[i] as BlobKey, entry)
    return entries
  }

  async read(key: BlobKey, signal?: AbortSignal): Promise<FoundEntry | undefined> {
    const found = await this.#calls.run('read', { readOnly: true, signal, key }, call => this.#catalog.read(key, call))
    return found && this.#found(key, found)
  }

  /** An entry that the catalog has at once; `undefined` where it has to be asked by `read`. */
  readNow(key: BlobKey): FoundEntry | undefined {
    const found = this.#calls.readNow(this.#catalog, key)
    return found && this.#found(key, found)
  }

  /** Runs `reads`, which asks `readNow` of many and throws nothing; what it could not ask for has to be asked by `read`. */
  readTogether(reads: () => void): void {
    this.#calls.readTogether(this.#catalog, reads)
  }

  async list(after: BlobKey | undefined, limit: number, signal?: AbortSignal): Promise<readonly Entry[]> {
    const entries = await this.#calls.run('list', { readOnly: true, signal }, call =>
      this.#catalog.list(after, limit, call)
    )
    let last = after ?? ''
    for (const { key } of entries) {
      if (key <= last || entries.length > limit) throw this.#calls.broken('list', 'ENG-LIST-1')
      last = key
    }
    return entries
  }

  explain(key: BlobKey): Promise<Explanation> {
    return this.#calls.run('explain', { readOnly: true, key }, call => this.#catalog.explain(key, call))
  }

  usage(): Promise<CatalogUsage> {
    return this.#calls.run('usage', READ, call => this.#catalog.usage(call))
  }

  stage(stages: readonly StageIntent[]): Promise<void> {
    return this.#calls.run('stage', {}, call => this.#catalog.stage(stages, call))
  }

  async staged(stages: readonly StageId[]): Promise<readonly boolean[]> {
    const there = await this.#calls.run('staged', READ, call => this.#catalog.staged(stages, call))
    this.#aligned('staged', 'ENG-STAGE-2', stages, there)
    return there
  }

  async unstage(stages: readonly StageId[]): Promise<readonly boolean[]> {
    const ended = await this.#calls.run('unstage', {}, call => this.#catalog.unstage(stages, call))
    this.#aligned('unstage', 'ENG-STAGE-3', stages, ended)
    return ended
  }

  publish(item: Publication): Promise<PublishOutcome> {
    return this.#calls.run('publish', { key: item.key }, call => this.#catalog.publish([item], call), {
      take: outcomes => this.#published(item, outcomes)
    })
  }

  #published(item: Publication, outcomes: readonly PublishOutcome[]): PublishOutcome {
    this.#aligned('publish', 'ENG-3', [item], outcomes)
    const outcome = outcomes[0] as PublishOutcome
    if ('entry' in outcome) this.#isOf('publish', item.key, outcome.entry)
    if (!isPossible(item, outcome)) throw this.#calls.broken('publish', `it answered ${outcome.outcome}`)
    return outcome
  }

  async pin(item: PinRequest): Promise<Entry | undefined> {
    const entries = await this.#calls.run('pin', { key: item.key }, call => this.#catalog.pin([item], call))
    this.#aligned('pin', 'ENG-3', [item], entries)
    const entry = entries[0]
    if (entry !== undefined) this.#isOf('pin', item.key, entry)
    return entry
  }

  renew(request: RenewRequest): Promise<Lost> {
    return this.#calls.run('renew', {}, call => this.#catalog.renew(request, call))
  }

  release(pins: readonly PinId[]): Promise<void> {
    return this.#calls.run('release', {}, call => this.#catalog.release(pins, call))
  }

  lease(signal?: AbortSignal): Promise<Lease | undefined> {
    return this.#calls.run('lease', { signal }, call => this.#catalog.lease(call), { abandon: late => late?.release() })
  }

  loadLive(lease: Lease, digests: Uint8Array, signal?: AbortSignal): Promise<void> {
    return this.#calls.run('lease.live', { signal }, async call => lease.live?.add(digests, call))
  }

  /** Ends a lease. A lease that cannot be given back is lost with its process; the sweep it served is over either way. */
  async releaseLease(lease: Lease): Promise<void> {
    await this.#calls.run('lease.release', READ, () => lease.release()).catch(lostWithItsProcess)
  }

  /** Whether the catalog lies on a server. */
  get hasServer(): boolean {
    return this.#catalog.server !== undefined
  }

  /** Most sessions at once; 0 where there is no server. */
  get sessionsMax(): number {
    return this.#catalog.server?.sessionsMax ?? 0
  }

  identity(): Promise<ServerIdentity> {
    return identityOf(this.#calls, this.#catalog.server)
  }

  unfit(): Promise<string | undefined> {
    return this.#calls.run('server.unfit', READ, async call => this.#catalog.server?.unfit(call))
  }

  /** The application's transaction, if the catalog can take part in one. */
  get joining(): ((transaction: unknown) => Promise<CheckedJoin>) | undefined {
    const { joining } = this.#catalog
    if (joining === undefined) return undefined
    return async transaction => {
      const joined = await this.#calls.run('joining.join', READ, call => joining.join(transaction, call))
      return new CheckedJoin(joined, this.#calls)
    }
  }

  async candidates(
    lease: Lease | undefined,
    after: string | undefined,
    limit: number,
    signal?: AbortSignal
  ): Promise<CandidatePage> {
    const options: CallOptions = { readOnly: true, signal }
    const page = await this.#calls.run('candidates', options, call =>
      this.#catalog.candidates(lease, after, limit, call)
    )
    if (page.scanned !== page.live + page.alreadyStaged + page.keys.length) {
      throw this.#calls.broken('candidates', 'scanned = live + alreadyStaged + keys')
    }
    if (page.keys.length + page.cancelled.length > limit) throw this.#calls.broken('candidates', 'ENG-CANDIDATES-1')
    return page
  }

  async stageCandidates(lease: Lease, keys: readonly BlobKey[]): Promise<readonly BlobKey[]> {
    const staged = await this.#calls.run('stageCandidates', {}, call =>
      this.#catalog.stageCandidates(lease, keys, call)
    )
    const asked = new Set(keys)
    if (!staged.every(key => asked.delete(key))) throw this.#calls.broken('stageCandidates', 'ENG-WINDOW-1')
    return staged
  }

  due(lease: Lease, after: string | undefined, limit: number, signal?: AbortSignal): Promise<DuePage> {
    return this.#calls.run('due', { readOnly: true, signal }, call => this.#catalog.due(lease, after, limit, call))
  }

  mark(key: BlobKey): Promise<{ mark: DeleteMark; entry: Entry } | 'pinned' | 'absent'> {
    return this.#calls.run('mark', { key }, call => this.#catalog.mark(key, call))
  }

  async remove(items: readonly Removal[], trashDelayMs: number, lease?: Lease): Promise<readonly RemoveOutcome[]> {
    const options: CallOptions = { key: items.length === 1 ? items[0]?.key : undefined }
    const outcomes = await this.#calls.run('remove', options, call =>
      this.#catalog.remove(items, trashDelayMs, lease, call)
    )
    this.#aligned('remove', 'ENG-3', items, outcomes)
    return outcomes
  }

  trash(after: string | undefined, limit: number, signal?: AbortSignal): Promise<readonly Trashed[]> {
    return this.#calls.run('trash', { readOnly: true, signal }, call => this.#catalog.trash(after, limit, call))
  }

  async known(found: readonly Found[]): Promise<readonly boolean[]> {
    const known = await this.#calls.run('known', READ, call => this.#catalog.known(found, call))
    this.#aligned('known', 'ENG-TRASH-3', found, known)
    return known
  }

  discard(found: readonly Found[]): Promise<void> {
    return this.#calls.run('discard', {}, call => this.#catalog.discard(found, call))
  }

  dropped(records: readonly DropRecord[]): Promise<void> {
    return this.#calls.run('dropped', {}, call => this.#catalog.dropped(records, call))
  }

  maintain(lease: Lease): Promise<Maintenance> {
    return this.#calls.run('maintain', {}, call => this.#catalog.maintain(lease, call))
  }

  #aligned(operation: string, clause: string, asked: readonly unknown[], answered: readonly unknown[]): void {
    if (!Array.isArray(answered) || asked.length !== answered.length) throw this.#calls.broken(operation, clause)
  }

  #found(key: BlobKey, found: FoundEntry): FoundEntry {
    this.#isOf('read', key, found.entry)
    if ((found.entry.place.tier === 'kv') !== (found.body !== undefined)) throw this.#calls.broken('read', 'ENG-READ-1')
    return found
  }

  #isOf(operation: string, key: BlobKey, entry: Entry): void {
    if (entry.key !== key) throw this.#calls.broken(operation, 'an entry of another key')
  }
}

/** Which outcomes a publication can have follows from what it brought. */
function isPossible({ bytes, healing }: Publication, { outcome }: PublishOutcome): boolean {
  if (outcome === 'absent') return bytes.kind === 'none'
  if (outcome === 'stage-lost') return bytes.kind === 'staged'
  if (outcome === 'healed') return bytes.kind !== 'none' && healing !== undefined
  return outcome === 'existed' || (outcome === 'created' && bytes.kind !== 'none')
}

function lostWithItsProcess(): void {}
