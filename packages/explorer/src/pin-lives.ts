/**
 * The rules of a fleet, whose instances share no clock: a pin row comes with a publication or a pin, and once it has expired by the
 * server's clock it never lives again; whoever holds a pin has a row that lives; and whoever has lost it never holds it again.
 */
import type { BlobKey, Owner } from '@alkblobs/core/engine'
import type { PinRowKept } from './durable/medium.js'
import type { Run } from './run.js'
import type { Step } from './world.js'

export class PinLives {
  readonly #run: Run
  #before = new Map<string, PinRowKept>()

  constructor(run: Run) {
    this.#run = run
  }

  follow(): void {
    this.#before = this.#rows()
    for (const hold of this.#run.holds) hold.isLost ||= !hold.pin.held
  }

  after(step: Step): void {
    if (this.#run.configuration.fleet !== true) return
    const now = this.#rows()
    for (const [id, row] of now) this.#came(step, id, row)
    this.#before = now
    for (const hold of this.#run.holds) {
      const { who, key, pin } = hold
      if (pin.held && hold.isLost) this.#broken('G7', `${who} holds a pin again that it had lost`, key)
      hold.isLost ||= !pin.held
      const isProtected = this.#run.pool.view.pinnedBy(key).some(owner => owner.startsWith(`${who}.`))
      if (pin.held && !isProtected) this.#broken('G3', `${who} holds a pin that has no living row`, key)
    }
  }

  #came({ label }: Step, id: string, row: PinRowKept): void {
    const before = this.#before.get(id)
    if (before === undefined) {
      if (!/^(publish|pin) /.test(label)) this.#broken('G7', `${label} made a pin row`, id)
      return
    }
    const isRevived = before.expiresAt <= this.#now && row.expiresAt > this.#now && row.generation === before.generation
    if (isRevived) this.#broken('G7', `${label} revived a pin row that had expired`, id)
  }

  /** By key and owner. */
  #rows(): Map<string, PinRowKept> {
    const rows = new Map<string, PinRowKept>()
    const of = (key: BlobKey, owner: Owner) => `${key} of ${owner}`
    for (const [key, owners] of this.#run.pool.durable?.pins ?? [])
      for (const [owner, row] of owners) rows.set(of(key, owner), row)
    return rows
  }

  get #now(): number {
    return this.#run.world.clockMs + (this.#run.pool.durable?.clockAheadMs ?? 0)
  }

  #broken(rule: string, what: string, of: string): void {
    this.#run.world.violate(`${rule}: ${what} (${of})`)
  }
}
