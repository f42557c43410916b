/**
 * Keys that enumerating sources called live, in a temporary table on the lease's session: it ends with the lease, nobody else
 * sees it, and the server joins it with the entries without a key coming back into the process.
 */
import { type BlobKey, type Call, digestOf, type Lease } from '@alkblobs/core/engine'
import type { Session } from '@alkblobs/postgres-session'

const MAKE = 'CREATE TEMPORARY TABLE IF NOT EXISTS alkblobs_live (key bytea NOT NULL)'
const COPY = 'COPY pg_temp.alkblobs_live (key) FROM STDIN (FORMAT binary)'
const INDEX = 'CREATE INDEX ON pg_temp.alkblobs_live (key)'
const VACUUM = 'VACUUM (ANALYZE) pg_temp.alkblobs_live'

/** The binary form of COPY: a signature, flags and extension (both 0), rows of one field of 32 bytes, -1. */
const HEAD = Buffer.from('5047434f50590aff0d0a000000000000000000', 'hex')
const TAIL = Buffer.from('ffff', 'hex')
const ROW_HEAD = Buffer.from('000100000020', 'hex')
const ROW_LENGTH = ROW_HEAD.length + 32
/** Keys in one copy, of 38 bytes each. */
const COPIED_MIN = 16 * 1024

interface Holder {
  say<T>(call: Call, work: (session: Session) => Promise<T>): Promise<T>
}

export class LiveKeys implements NonNullable<Lease['live']> {
  readonly #holder: Holder
  #state: 'none' | 'filling' | 'ready' = 'none'
  /** Rows that wait until a copy of them is worth its way to the server. */
  #rows: Buffer[] = []
  #count = 0

  constructor(holder: Holder) {
    this.#holder = holder
  }

  async add(keys: readonly BlobKey[], call: Call): Promise<void> {
    if (keys.length === 0) return
    this.#rows.push(binaryRows(keys))
    this.#count += keys.length
    if (this.#count >= COPIED_MIN) await this.#copy(call)
  }

  /** Whether there are any. */
  get isFilled(): boolean {
    return this.#state !== 'none' || this.#count > 0
  }

  /** Keys that could not be copied stay, so that whoever goes on all the same fails again, rather than to take them for dead. */
  async #copy(call: Call): Promise<void> {
    await this.#holder.say(call, async session => {
      const rows = [...this.#rows]
      if (rows.length === 0) return
      if (this.#state === 'none') await session.run(MAKE)
      this.#state = this.#state === 'ready' ? 'ready' : 'filling'
      await session.copyIn(COPY, [Buffer.concat([HEAD, ...rows, TAIL])])
      this.#rows.splice(0, rows.length)
      this.#count = this.#rows.reduce((count, { length }) => count + length / ROW_LENGTH, 0)
    })
  }

  /**
   * Gets the table ready for being judged by. An index over all keys at once is cheaper than one that grows with them, and after
   * a vacuum the index alone is read: half the time.
   */
  async prepare(call: Call): Promise<void> {
    if (this.#count > 0) await this.#copy(call)
    if (this.#state !== 'filling') return
    await this.#holder.say(call, async session => {
      await session.run(INDEX)
      await session.run(VACUUM)
    })
    this.#state = 'ready'
  }
}

function binaryRows(keys: readonly BlobKey[]): Buffer {
  const bytes = Buffer.allocUnsafe(keys.length * ROW_LENGTH)
  let at = 0
  for (const key of keys) {
    ROW_HEAD.copy(bytes, at)
    digestOf(key).copy(bytes, at + ROW_HEAD.length)
    at += ROW_LENGTH
  }
  return bytes
}
