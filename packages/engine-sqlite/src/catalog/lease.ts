/**
 * The right to sweep. Two things hold it together:
 *   - an open BEGIN EXCLUSIVE on a second file, which ends with its process, whatever kills it;
 *   - a fencing counter in the pool, raised by each holder and compared in every transaction that stages or removes.
 * The second makes the first safe: whoever lost the lock without noticing (its file was removed, and another took a lease on
 * a new one) commits nothing more.
 */
import { statSync } from 'node:fs'
import { type Call, type Catalog, EngineFault, type Lease } from '@alkblobs/core/engine'
import type Database from 'better-sqlite3'
import { isBusy } from '../classify.js'
import { openDatabase } from '../connection.js'
import { noPool } from '../group-commit.js'
import { makeFile } from '../medium.js'
import type { Pool } from '../pool.js'
import type { Transaction } from '../transaction.js'
import { pause, refuseIfOver } from '../waiting.js'

const RAISE = 'UPDATE meta SET lease = lease + 1 RETURNING lease'
const HOLDER = 'SELECT lease FROM meta'
/** Two that ask at the same moment can lock each other out; a second look a little later tells that from a holder. */
const ATTEMPTS = 3

/** A lock on a file of its own. */
class FileLock {
  readonly #db: Database.Database
  readonly #file: string
  readonly #ino: number

  private constructor(db: Database.Database, file: string, ino: number) {
    this.#db = db
    this.#file = file
    this.#ino = ino
  }

  /** Takes the lock; `undefined` while somebody else has it. */
  static take(file: string): FileLock | undefined {
    makeFile(file)
    const before = inodeOf(file)
    const db = openDatabase(file)
    try {
      // No journal on disk: nothing is ever written here.
      db.pragma('journal_mode = MEMORY')
      db.exec('BEGIN EXCLUSIVE')
      if (before !== undefined && inodeOf(file) === before) return new FileLock(db, file, before)
    } catch (error) {
      db.close()
      if (isBusy(error)) return undefined
      throw error
    }
    // The file was replaced while it was being locked: a lock that nobody else would see.
    db.close()
    return undefined
  }

  get isInForce(): boolean {
    return this.#db.open && this.#db.inTransaction && inodeOf(this.#file) === this.#ino
  }

  end(): void {
    this.#db.close()
  }
}

class HeldLease implements Lease {
  readonly #lock: FileLock
  readonly #lost = new AbortController()
  readonly #count: number
  readonly #onRelease: () => void
  #isReleased = false

  constructor(lock: FileLock, count: number, onRelease: () => void) {
    this.#lock = lock
    this.#count = count
    this.#onRelease = onRelease
  }

  get lost(): AbortSignal {
    return this.#lost.signal
  }

  /** @throws EngineFault `conflict`, after `lost` has fired, unless the lease is held beyond doubt. */
  check(inPool: () => number | undefined): void {
    if (this.#isReleased || this.#lost.signal.aborted) throw leaseLost()
    if (this.#lock.isInForce && inPool() === this.#count) return
    const error = leaseLost()
    this.#lost.abort(error)
    throw error
  }

  async release(): Promise<void> {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#onRelease()
    this.#lock.end()
  }
}

/** The leases of one open engine: taken here, ended with it. */
export class Leases implements Pick<Catalog, 'lease'> {
  readonly #pool: Pool
  readonly #held = new Set<HeldLease>()

  constructor(pool: Pool) {
    this.#pool = pool
    this.lease = this.lease.bind(this)
  }

  async lease(call: Call): Promise<Lease | undefined> {
    refuseIfOver(call)
    await this.#pool.create(call)
    const lock = await takeSoon(this.#pool.medium.leaseFile(), call)
    if (lock === undefined) return undefined
    try {
      const count = await this.#pool.write(call, { absent: noPool, run: raise })
      const held: HeldLease = new HeldLease(lock, count, () => this.#held.delete(held))
      this.#held.add(held)
      return held
    } catch (error) {
      lock.end()
      throw error
    }
  }

  /** For every transaction of a sweep. @throws EngineFault `conflict` if the lease is not this engine's, or not held. */
  check(lease: Lease | undefined, { at }: Pick<Transaction, 'at'>): void {
    if (!(lease instanceof HeldLease) || !this.#held.has(lease)) throw leaseLost()
    lease.check(() => at.row<[number]>(HOLDER)?.[0])
  }

  async endAll(): Promise<void> {
    for (const lease of this.#held) await lease.release()
  }
}

async function takeSoon(file: string, call: Call): Promise<FileLock | undefined> {
  for (let attempt = 1; ; attempt++) {
    const lock = FileLock.take(file)
    if (lock !== undefined || attempt === ATTEMPTS) return lock
    await pause(attempt, call.deadlineMs)
    refuseIfOver(call)
  }
}

function raise({ at }: Transaction): number {
  return at.row<[number]>(RAISE)?.[0] as number
}

function inodeOf(file: string): number | undefined {
  return statSync(file, { throwIfNoEntry: false })?.ino
}

function leaseLost(): EngineFault {
  return new EngineFault('conflict', 'lease lost')
}
