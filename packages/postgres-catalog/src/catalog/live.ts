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

interface Holder {
  say<T>(call: Call, work: (session: Session) => Promise<T>): Promise<T>
}

export class LiveKeys implements NonNullable<Lease['live']> {
  readonly #holder: Holder
  #state: 'none' | 'filling' | 'ready' = 'none'

  constructor(holder: Holder) {
    this.#holder = holder
  }

  async add(keys: readonly BlobKey[], call: Call): Promise<void> {
    if (keys.length === 0) return
    await this.#holder.say(call, async session => {
      if (this.#state === 'none') await session.run(MAKE)
      this.#state = this.#state === 'ready' ? 'ready' : 'filling'
      await session.copyIn(COPY, [binaryRows(keys)])
    })
  }

  /** Whether there are any. */
  get isFilled(): boolean {
    return this.#state !== 'none'
  }

  /**
   * Gets the table ready for being judged by. An index over all keys at once is cheaper than one that grows with them, and after
   * a vacuum the index alone is read: half the time.
   */
  async prepare(call: Call): Promise<void> {
    if (this.#state !== 'filling') return
    await this.#holder.say(call, async session => {
      await session.run(INDEX)
      await session.run(VACUUM)
    })
    this.#state = 'ready'
  }
}

function binaryRows(keys: readonly BlobKey[]): Buffer {
  const bytes = Buffer.allocUnsafe(HEAD.length + keys.length * ROW_LENGTH + TAIL.length)
  HEAD.copy(bytes)
  let at = HEAD.length
  for (const key of keys) {
    ROW_HEAD.copy(bytes, at)
    digestOf(key).copy(bytes, at + ROW_HEAD.length)
    at += ROW_LENGTH
  }
  TAIL.copy(bytes, at)
  return bytes
}
