/**
 * What was armed, and proof that it struck. A fault is a ticket from the moment it is armed; a ticket must be finished, and
 * finishing one that did not fire throws. What a ledger holds is written down, stamped with the run that it belongs to, and judged
 * by the gate: nothing that a test forgets is forgotten there.
 */
import { mkdirSync, renameSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'

/** `injector`: at the contract. `L1`: the peer is told. `L2`: it is not. `L3`: it is dead. */
export type Layer = 'injector' | 'L1' | 'L2' | 'L3'
/** How a connection ended: said goodbye to (a message or FIN), or torn (RST, or silence). */
export type Leg = 'graceful' | 'torn'

/** One square of the matrix. */
export interface Cell {
  readonly surface: string
  readonly engine: string
  readonly layer: Layer
  readonly leg?: Leg
}

/** One ticket as it is written down. */
export interface FaultRecord {
  readonly what: string
  readonly fired: boolean
  /** How it is known that it fired. */
  readonly proof?: string
  /** Where it struck. */
  readonly cells: readonly Cell[]
}

/** One file of records. */
export interface LedgerFile {
  readonly run: string
  readonly source: string
  readonly records: readonly FaultRecord[]
}

/** A fault that is armed. */
export interface Armed {
  readonly what: string
  readonly hasFired: boolean
  /** Ends it. @throws UnfiredFault if it did not fire. */
  finish(): void
}

/** An armed fault that never struck: the test showed nothing. */
export class UnfiredFault extends Error {
  constructor(what: string) {
    super(`an armed fault did not fire: ${what}`)
    this.name = 'UnfiredFault'
  }
}

/** A fault that its test armed and left alone. */
export class ForgottenFault extends Error {
  constructor(whats: readonly string[]) {
    super(`armed faults were never finished: ${whats.join('; ')}`)
    this.name = 'ForgottenFault'
  }
}

export class Ticket implements Armed {
  readonly what: string
  readonly #close: (ticket: Ticket, record: FaultRecord | undefined) => void
  readonly #cells: Cell[] = []
  #proof: string | undefined
  #fired = false
  #isOver = false

  /** @internal */
  constructor(what: string, close: (ticket: Ticket, record: FaultRecord | undefined) => void) {
    this.what = what
    this.#close = close
  }

  get hasFired(): boolean {
    return this.#fired
  }

  /** It struck there. May be said more than once. */
  fire(cells: readonly Cell[], proof?: string): void {
    this.#fired = true
    this.#cells.push(...cells)
    if (proof !== undefined) this.#proof = proof
  }

  finish(): void {
    if (this.#isOver) return
    this.#isOver = true
    const proof = this.#proof === undefined ? {} : { proof: this.#proof }
    this.#close(this, { what: this.what, fired: this.#fired, ...proof, cells: [...this.#cells] })
    if (!this.#fired) throw new UnfiredFault(this.what)
  }

  /** Takes back a fault that had nothing left to strike: the end of a loop over every call. @throws if it has fired. */
  retract(): void {
    if (this.#fired) throw new Error(`it has fired, so it is to be finished: ${this.what}`)
    if (this.#isOver) return
    this.#isOver = true
    this.#close(this, undefined)
  }
}

export class Ledger {
  readonly #open = new Set<Ticket>()
  readonly #records: FaultRecord[] = []

  arm(what: string): Ticket {
    const ticket = new Ticket(what, (closed, record) => {
      this.#open.delete(closed)
      if (record !== undefined) this.#records.push(record)
    })
    this.#open.add(ticket)
    return ticket
  }

  get records(): readonly FaultRecord[] {
    return this.#records
  }

  /** @throws ForgottenFault for tickets that are still open; they are closed, and recorded as not fired. */
  assertFinished(): void {
    const forgotten = [...this.#open]
    this.#open.clear()
    if (forgotten.length === 0) return
    for (const { what } of forgotten) this.#records.push({ what: `${what} (forgotten)`, fired: false, cells: [] })
    throw new ForgottenFault(forgotten.map(({ what }) => what))
  }

  /** Writes the records into the folder, whole or not at all. Nothing to tell is no file. */
  write({ folder, run, source }: { readonly folder: string; readonly run: string; readonly source: string }): void {
    if (this.#records.length === 0) return
    mkdirSync(folder, { recursive: true })
    const file = join(folder, `${source.replaceAll(/[^\w.-]+/g, '-')}.json`)
    const text: LedgerFile = { run, source, records: this.#records }
    writeFileSync(`${file}.part`, JSON.stringify(text))
    renameSync(`${file}.part`, file)
  }
}

/** The ledger of this process: everything that is armed without naming another one is in it. */
export const ledger = new Ledger()
