/**
 * Makes the server itself fail the nth statement of a class. A trigger counts in a sequence and raises: `nextval` is not undone by the
 * rollback that its own error causes, so the count is true whatever became of the transaction.
 */
import { randomBytes } from 'node:crypto'
import { type Armed, type Ledger, ledger, type Ticket } from '../ledger.js'
import { assertMinted, type PgAdmin, quoted } from './admin.js'

/** The statements that can be made to fail. */
export const STATEMENT_CLASSES = {
  entries: { table: 'entries', events: 'INSERT' },
  gc_pins: { table: 'gc_pins', events: 'INSERT OR UPDATE' },
  gc_window: { table: 'gc_window', events: 'DELETE' },
  stages: { table: 'stages', events: 'DELETE' },
  trash: { table: 'trash', events: 'INSERT' },
  lo_entries: { table: 'lo_entries', events: 'INSERT' }
} as const

export type StatementClass = keyof typeof STATEMENT_CLASSES

export interface PgFaultReport {
  /** How many rows of the class were about to be written. */
  readonly invocations: number
  /** How many of them failed. */
  readonly injected: number
  readonly passed: number
}

export interface PgFault {
  readonly schema: string
  readonly statement: StatementClass
  /** The first that fails, from 1. Default 1. */
  readonly nth?: number
  /** `for good`: that one and all after it. Default `once`. */
  readonly lasting?: 'once' | 'for good'
  /** What the server answers. Default 53100, disk full. */
  readonly sqlState?: string
}

/** An armed fault. It must be finished, whether or not it was disarmed before. */
export interface ArmedPgFault extends Omit<Armed, 'finish' | 'hasFired'> {
  /** What it has done so far. */
  report(): Promise<PgFaultReport>
  /** From here on nothing fails any more; the report stays. Idempotent. */
  disarm(): Promise<void>
  /** Disarms it and takes everything away. @throws UnfiredFault if it did not fire. */
  finish(): Promise<PgFaultReport>
  /** The same, for the end of a loop over every statement: one that had nothing left to strike is taken back. */
  end(): Promise<PgFaultReport>
}

export class PgFaultArmer {
  readonly #admin: PgAdmin
  readonly #ledger: Ledger

  constructor(admin: PgAdmin, into: Ledger = ledger) {
    this.#admin = admin
    this.#ledger = into
  }

  /** @throws NotMinted for a database that is not of the tests; RangeError for an `nth` or a state that is none. */
  async arm({ schema, statement, nth = 1, lasting = 'once', sqlState = '53100' }: PgFault): Promise<ArmedPgFault> {
    const admin = this.#admin
    assertMinted(admin.database, schema)
    if (!Number.isSafeInteger(nth) || nth < 1) throw new RangeError('nth must be a whole number from 1')
    if (!/^[0-9A-Z]{5}$/.test(sqlState)) throw new RangeError('sqlState must be five digits or capital letters')
    const { table, events } = STATEMENT_CLASSES[statement]
    const name = `fault_${randomBytes(6).toString('hex')}`
    const within = (object: string) => `${quoted(schema)}.${object}`
    const comparison = lasting === 'once' ? '=' : '>='
    await admin.query(`CREATE SEQUENCE ${within(name)}`)
    await admin.query(`
      CREATE FUNCTION ${within(`${name}()`)} RETURNS trigger LANGUAGE plpgsql AS $body$ BEGIN
        IF nextval('${within(name)}') ${comparison} ${nth} THEN
          RAISE EXCEPTION 'injected (${sqlState})' USING ERRCODE = '${sqlState}';
        END IF;
        RETURN COALESCE(NEW, OLD);
      END $body$`)
    await admin.query(`CREATE TRIGGER ${name} BEFORE ${events} ON ${within(quoted(table))}
      FOR EACH ROW EXECUTE FUNCTION ${within(`${name}()`)}`)
    const ticket = this.#ledger.arm(`${sqlState} at ${statement} ${nth}, ${lasting}`)
    return new ArmedInServer({ admin, ticket, name: within(name), nth, lasting })
  }
}

interface Parts {
  readonly admin: PgAdmin
  readonly ticket: Ticket
  readonly name: string
  readonly nth: number
  readonly lasting: 'once' | 'for good'
}

class ArmedInServer implements ArmedPgFault {
  readonly #parts: Parts
  #isArmed = true

  constructor(parts: Parts) {
    this.#parts = parts
  }

  get what(): string {
    return this.#parts.ticket.what
  }

  async report(): Promise<PgFaultReport> {
    const { admin, name, nth, lasting } = this.#parts
    const [row] = await admin.query<{ count: string | number }>(
      `SELECT CASE WHEN is_called THEN last_value ELSE 0 END AS count FROM ${name}`
    )
    const invocations = Number(row?.count ?? 0)
    const reached = Math.max(0, invocations - nth + 1)
    const injected = lasting === 'once' ? Math.min(1, reached) : reached
    return { invocations, injected, passed: invocations - injected }
  }

  async disarm(): Promise<void> {
    if (!this.#isArmed) return
    this.#isArmed = false
    await this.#parts.admin.query(`DROP FUNCTION ${this.#parts.name}() CASCADE`)
  }

  async finish(): Promise<PgFaultReport> {
    const report = await this.#takeAway()
    this.#parts.ticket.finish()
    return report
  }

  async end(): Promise<PgFaultReport> {
    const report = await this.#takeAway()
    if (report.injected > 0) this.#parts.ticket.finish()
    else this.#parts.ticket.retract()
    return report
  }

  async #takeAway(): Promise<PgFaultReport> {
    const { admin, name, ticket } = this.#parts
    await this.disarm()
    const report = await this.report()
    await admin.query(`DROP SEQUENCE ${name}`)
    if (report.injected > 0) ticket.fire([], `the sequence counted ${report.invocations}`)
    return report
  }
}
