/** One open store as the model sees it: what it holds, and what it has released and not yet told the catalog. */
import type { PoolModel } from './pool.js'
import { PIN_TTL_MS, STAGE_TTL_MS } from './pool.js'

/** A receipt or pin in the hand of a caller. */
export interface HoldModel {
  readonly content: number
  readonly holder: Holder
  isReleased: boolean
  isLost: boolean
}

/** How a liveness source behaves. `fails`: it throws; `garbles`: it names something that is no key. */
export type SourceHealth = 'well' | 'fails' | 'garbles'

/** `table`: one of the application, judged by the catalog. */
export type SourceKind = 'live' | 'live-async' | 'is-live' | 'table'

export interface SourceModel {
  readonly name: string
  readonly kind: SourceKind
  readonly contents: Set<number>
  health: SourceHealth
}

export class Holder {
  /** Inclusive, in bytes; a pool may be opened with another one at any time. */
  readonly threshold: number
  readonly held = new Map<number, Set<HoldModel>>()
  readonly released = new Set<number>()
  readonly sources: SourceModel[] = []

  constructor(threshold: number) {
    this.threshold = threshold
  }

  hold(content: number): HoldModel {
    const hold: HoldModel = { content, holder: this, isReleased: false, isLost: false }
    const holds = this.held.get(content) ?? new Set()
    this.held.set(content, holds.add(hold))
    return hold
  }

  release(hold: HoldModel): void {
    hold.isReleased = true
    const holds = this.held.get(hold.content)
    if (holds?.delete(hold) && holds.size === 0) this.#end(hold.content)
  }

  /** What was released reaches the catalog: the rows end, unless a later put or pin has renewed them. */
  flush(pool: PoolModel): void {
    for (const content of this.released) if (!this.held.has(content)) pool.pins.get(this)?.delete(content)
    this.released.clear()
  }

  /** Whether the next renewal finds pins that are lost. */
  losesPins(pool: PoolModel): boolean {
    return [...this.held.keys()].some(content => !this.#isRenewable(pool, content))
  }

  /**
   * Everything held is renewed. What has no row any more is lost, and in a fleet what has expired too; elsewhere that protects as a
   * new pin does.
   */
  renew(pool: PoolModel): void {
    const rows = pool.pins.get(this)
    for (const [content, holds] of [...this.held]) {
      if (rows === undefined || !this.#isRenewable(pool, content)) {
        for (const hold of holds) hold.isLost = true
        this.#end(content)
        continue
      }
      const expiresAtMs = rows.get(content) as number
      if (!pool.isPinRowAlive(expiresAtMs)) pool.cancel(content)
      rows.set(content, Math.max(expiresAtMs, pool.nowMs + PIN_TTL_MS))
    }
    for (const writer of pool.stages()) {
      const expiresAtMs = writer.stageExpiresAtMs as number
      const isOurs = writer.holder === this && !writer.isOver && expiresAtMs > pool.nowMs
      if (isOurs) writer.stageExpiresAtMs = pool.nowMs + STAGE_TTL_MS
    }
  }

  #isRenewable(pool: PoolModel, content: number): boolean {
    const expiresAtMs = pool.pins.get(this)?.get(content)
    return expiresAtMs !== undefined && (pool.revives || pool.isPinRowAlive(expiresAtMs))
  }

  #end(content: number): void {
    this.held.delete(content)
    this.released.add(content)
  }
}
