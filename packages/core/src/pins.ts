/**
 * The pins of one store: how often it holds each key, the generation of its row, renewal, loss and release.
 *
 * One row in the catalog stands for all pins that this store holds of a key. Every put and pin mints a rising generation
 * and is counted from before its transaction until its release, so the row ends only when nobody here counts on it, and
 * a late release, which names the last generation it knew, cannot end the row of a put that came after.
 */
import type { CheckedCatalog } from './checked-catalog.js'
import type { Owner, PinId, PinRow, StageId } from './engine.js'
import { elapsedMs, Held, type HeldParts, type Instant, instant } from './held.js'
import type { BlobKey } from './key.js'
import { PAGE_SIZE, RELEASE_DELAY_MS, RENEWALS_PER_TTL } from './limits.js'
import { PinState } from './pin.js'

/** A pin that is being taken; ends in `confirm` or `abandon`. */
export interface Reservation {
  readonly key: BlobKey
  readonly row: PinRow
  readonly begun: Instant
  readonly held: Held
}

interface PinsConfig {
  readonly owner: Owner
  readonly pinTtlMs: number
  readonly stageTtlMs: number
  /** Whether rows expire at all; in the memory of one process they do not. */
  readonly expires: boolean
  /** Whether a row that has expired and is still there may live on. Never in a fleet: others have acted on its expiry. */
  readonly revives: boolean
}

export class Pins {
  readonly #catalog: CheckedCatalog
  readonly #config: PinsConfig
  readonly #held = new Map<BlobKey, Held>()
  readonly #stages = new Map<StageId, () => void>()
  readonly #parts: HeldParts
  #generation = 0
  #released: PinId[] = []
  #releaseTimer: NodeJS.Timeout | undefined
  #renewTimer: NodeJS.Timeout | undefined
  #flushing: Promise<void> = Promise.resolve()

  constructor(catalog: CheckedCatalog, config: PinsConfig) {
    this.#catalog = catalog
    this.#config = config
    const { pinTtlMs, expires } = config
    this.#parts = { pinTtlMs, expires, onUnused: held => this.#ended(held) }
  }

  get ttlMs(): number {
    return this.#config.pinTtlMs
  }

  /** Counts a pin before the transaction that takes it. */
  reserve(key: BlobKey): Reservation {
    const begun = instant()
    let held = this.#held.get(key)
    if (held === undefined) {
      held = new Held(key, begun, this.#parts)
      this.#held.set(key, held)
    }
    held.pending++
    held.minted = ++this.#generation
    return { key, row: { owner: this.#config.owner, generation: held.minted }, begun, held }
  }

  /** The transaction has written the row. */
  confirm({ key, row, begun, held }: Reservation, length: number): PinState {
    held.pending--
    // This row may have come after the one before it had expired: nobody was protected in between.
    if (this.#isOverdue(held)) held.loseAll()
    held.confirmed = Math.max(held.confirmed, row.generation)
    if (held.renewed.monotonicMs <= begun.monotonicMs) held.renewed = begun
    const state = new PinState(key, length, held)
    held.states.add(state)
    this.#keepRenewing()
    return state
  }

  /**
   * Whether the pin just taken protects by now. A transaction that was answered later than a TTL after it began may have written a row
   * that has expired since: where rows are not revived, one more renewal must find it alive.
   */
  isAlive(reservation: Reservation): true | Promise<boolean> {
    const { pinTtlMs, revives, expires } = this.#config
    if (revives || !expires || elapsedMs(reservation.begun) < pinTtlMs) return true
    return this.#isFoundAlive(reservation)
  }

  async #isFoundAlive({ key, row }: Reservation): Promise<boolean> {
    const { pinTtlMs, stageTtlMs } = this.#config
    const asked = instant()
    const pins = [{ key, pin: row }]
    const lost = await this.#catalog.renew({ pins, pinTtlMs, stages: [], stageTtlMs, revive: false })
    if (lost.pins.length > 0) return false
    const held = this.#held.get(key)
    if (held !== undefined && held.renewed.monotonicMs <= asked.monotonicMs) held.renewed = asked
    return elapsedMs(asked) < pinTtlMs
  }

  /** The transaction wrote no row, or nobody knows whether it did: then the release sees to it. */
  abandon({ held }: Reservation): void {
    held.pending--
    held.endIfUnused()
  }

  /** What this store holds, by count. */
  list(): { key: BlobKey; count: number }[] {
    return [...this.#held].flatMap(([key, { states }]) => (states.size > 0 ? [{ key, count: states.size }] : []))
  }

  /** Keeps a stage alive until the answer is called; `onLost` tells that it has expired. */
  holdStage(stage: StageId, onLost: () => void): () => void {
    this.#stages.set(stage, onLost)
    this.#keepRenewing()
    return () => {
      this.#stages.delete(stage)
      this.#stopIfIdle()
    }
  }

  /** Renews everything this store holds, in statements of bounded size, and tells the holders of what is lost. */
  async renew(): Promise<void> {
    const pins = [...this.#held].flatMap(([key, held]) =>
      held.states.size > 0 ? [this.#idOf(key, held.confirmed)] : []
    )
    const stages = [...this.#stages.keys()]
    const { pinTtlMs, stageTtlMs } = this.#config
    for (let i = 0; i < pins.length || i < stages.length; i += PAGE_SIZE) {
      const batch = { pins: pins.slice(i, i + PAGE_SIZE), stages: stages.slice(i, i + PAGE_SIZE) }
      const begun = instant()
      const lost = await this.#catalog.renew({ ...batch, pinTtlMs, stageTtlMs, revive: this.#config.revives })
      for (const { key } of batch.pins) this.#renewed(key, begun)
      for (const pin of lost.pins) this.#lose(pin)
      for (const stage of lost.stages) this.#stages.get(stage)?.()
    }
  }

  /** Ends the rows of all pins released so far. Resolves when they are gone. */
  flush(): Promise<void> {
    clearTimeout(this.#releaseTimer)
    this.#releaseTimer = undefined
    this.#flushing = this.#flushing.catch(forgotten).then(() => this.#flush())
    return this.#flushing
  }

  /** Stops all timers and releases everything held. */
  async close(): Promise<void> {
    clearInterval(this.#renewTimer)
    for (const { states } of [...this.#held.values()]) for (const state of [...states]) state.release()
    await this.flush()
  }

  #idOf(key: BlobKey, generation: number): PinId {
    return { key, pin: { owner: this.#config.owner, generation } }
  }

  /** Nobody here counts on the key any more. */
  #ended(held: Held): void {
    const { key, minted } = held
    // A key lost and taken anew has another Held by now, with rows of its own.
    if (this.#held.get(key) === held) this.#held.delete(key)
    this.#stopIfIdle()
    this.#released.push(this.#idOf(key, minted))
    this.#releaseTimer ??= setTimeout(() => {
      // The rows expire by themselves if this fails; a release has no other consequence to report.
      this.flush().catch(forgotten)
    }, RELEASE_DELAY_MS)
  }

  async #flush(): Promise<void> {
    const released = this.#released
    if (released.length === 0) return
    this.#released = []
    const last = new Map<BlobKey, PinId>()
    for (const pin of released) last.set(pin.key, pin)
    const pins = [...last.values()]
    try {
      for (let i = 0; i < pins.length; i += PAGE_SIZE) await this.#catalog.release(pins.slice(i, i + PAGE_SIZE))
    } catch (error) {
      this.#released.unshift(...pins)
      throw error
    }
  }

  #renewed(key: BlobKey, begun: Instant): void {
    const held = this.#held.get(key)
    if (held === undefined || held.renewed.monotonicMs > begun.monotonicMs) return
    // An answer that took so long may be about the row of a later put.
    if (this.#isOverdue(held)) this.#lose(this.#idOf(key, held.confirmed))
    else held.renewed = begun
  }

  /** A renewal found no row. Whoever confirmed a later generation meanwhile has a row of its own. */
  #lose({ key, pin }: PinId): void {
    const held = this.#held.get(key)
    if (held === undefined || held.confirmed > pin.generation) return
    held.loseAll()
    held.endIfUnused()
  }

  /** Where rows are not revived, one that was not renewed for a TTL counts as lost: it may have expired, and others may know. */
  #isOverdue({ states, renewed }: Held): boolean {
    const { pinTtlMs, revives, expires } = this.#config
    return !revives && expires && states.size > 0 && elapsedMs(renewed) >= pinTtlMs
  }

  /** Tells the holders, whether the catalog can be reached or not. */
  #loseOverdue(): void {
    for (const [key, held] of [...this.#held]) if (this.#isOverdue(held)) this.#lose(this.#idOf(key, held.confirmed))
  }

  /** Who holds nothing leaves no timer behind. */
  #stopIfIdle(): void {
    if (this.#held.size > 0 || this.#stages.size > 0) return
    clearInterval(this.#renewTimer)
    this.#renewTimer = undefined
  }

  #keepRenewing(): void {
    const { pinTtlMs, stageTtlMs } = this.#config
    this.#renewTimer ??= setInterval(
      () => {
        // The next tick tries again: RENEWALS_PER_TTL leaves room for two failures. After that nobody may count on it.
        this.#loseOverdue()
        this.renew().catch(forgotten)
      },
      Math.max(1, Math.floor(Math.min(pinTtlMs, stageTtlMs) / RENEWALS_PER_TTL))
    ).unref()
  }
}

/** For work that is tried again by itself, or whose caller was told. */
function forgotten(): void {}
