/**
 * Keys that enumerating sources called live, in a temporary table on the lease's session: it ends with the lease, nobody else
 * sees it, and the server joins it with the entries without a key coming back into the process.
 */
import type { Call, Lease } from '@alkblobs/core/engine'
import type { Session } from '@alkblobs/postgres-session'

const MAKE = 'CREATE TEMPORARY TABLE IF NOT EXISTS alkblobs_live (key bytea NOT NULL)'
const COPY = 'COPY pg_temp.alkblobs_live (key) FROM STDIN (FORMAT binary)'
const INDEX = 'CREATE INDEX ON pg_temp.alkblobs_live (key)'
const VACUUM = 'VACUUM pg_temp.alkblobs_live'

const DIGEST_LENGTH = 32
/** The binary form of COPY: a signature, flags and extension (both 0), rows of one field of 32 bytes, -1. */
const HEAD = Buffer.from('5047434f50590aff0d0a000000000000000000', 'hex')
const TAIL = Buffer.from('ffff', 'hex')
const ROW_HEAD = Buffer.from('000100000020', 'hex')
const ROW_LENGTH = ROW_HEAD.length + DIGEST_LENGTH
/** So many are put into a hash in less time than an index takes to make; a step of a sweep reads them all, and there are few steps then. */
const UNORDERED_MAX = 250_000
/** The least that is copied before all is there: 16,384 keys. */
const COPIED_MIN = 16 * 1024 * ROW_LENGTH

interface Holder {
  say<T>(call: Call, work: (session: Session) => Promise<T>): Promise<T>
}

export class LiveKeys implements NonNullable<Lease['live']> {
  readonly #holder: Holder
  /** Rows that are not on their way to the server. */
  #rows: Buffer[] = []
  #count = 0
  /** The copy under way: the server takes it while the next keys are gathered. */
  #copying: Promise<void> | undefined
  #isMade = false
  #isOrdered = false

  constructor(holder: Holder) {
    this.#holder = holder
  }

  async add(digests: Uint8Array, call: Call): Promise<void> {
    if (digests.length === 0) return
    this.#rows.push(binaryRows(digests))
    this.#count += digests.length / DIGEST_LENGTH
    if (this.#rows.reduce((length, rows) => length + rows.length, 0) < COPIED_MIN) return
    await this.#copied()
    this.#copying = this.#copy(call)
    this.#copying.catch(heardLater)
  }

  /** Whether there are any. */
  get isFilled(): boolean {
    return this.#count > 0
  }

  /** Whether they can be read in the order of keys. */
  get isOrdered(): boolean {
    return this.#isOrdered
  }

  /** The end of the copy under way; what it failed with is told once. */
  async #copied(): Promise<void> {
    const copying = this.#copying
    this.#copying = undefined
    await copying
  }

  /** Keys that could not be copied stay, so that whoever goes on all the same fails again, rather than to take them for dead. */
  async #copy(call: Call): Promise<void> {
    const rows = this.#rows
    this.#rows = []
    try {
      await this.#holder.say(call, async session => {
        if (!this.#isMade) await session.run(MAKE)
        this.#isMade = true
        await session.copyIn(COPY, [HEAD, ...rows, TAIL])
      })
    } catch (error) {
      this.#rows.unshift(...rows)
      throw error
    }
  }

  /** Gets the table ready for being read: few keys are read as they lie, many in their order. */
  async prepare(call: Call): Promise<void> {
    await this.#copied()
    if (this.#rows.length > 0) await this.#copy(call)
    if (this.#count > UNORDERED_MAX) await this.order(call)
  }

  /**
   * Gets it ready for being asked key by key. An index over all keys at once is cheaper than one that grows with them, and after a vacuum
   * the index alone is read: half the time.
   */
  async order(call: Call): Promise<void> {
    await this.#copied()
    if (this.#rows.length > 0) await this.#copy(call)
    if (this.#isOrdered || this.#count === 0) return
    await this.#holder.say(call, session => Promise.all([session.run(INDEX), session.run(VACUUM)]))
    this.#isOrdered = true
  }
}

function binaryRows(digests: Uint8Array): Buffer {
  const rows = Buffer.allocUnsafeSlow((digests.length / DIGEST_LENGTH) * ROW_LENGTH)
  for (let from = 0, to = 0; from < digests.length; ) {
    for (let i = 0; i < ROW_HEAD.length; i++) rows[to++] = ROW_HEAD[i] as number
    for (const end = from + DIGEST_LENGTH; from < end; ) rows[to++] = digests[from++] as number
  }
  return rows
}

/** By whoever adds or asks next. */
function heardLater(): void {}
