/**
 * Joins the writes of concurrent calls: what waits when a transaction begins is committed together, and pays for one sync.
 *
 *   1. A call queues a job and, if nobody is at work, asks for a turn of the event loop. All that queues in the same turn joins. Where
 *      the last job came alone the rest of this turn is all that is waited for, so that puts made one after the other lose no time.
 *   2. A batch takes jobs from the head of the queue, up to JOBS_MAX and BYTES_MAX, and runs them in one transaction.
 *   3. File locked: the batch goes back to the head and waits. Any other failure: nothing of it was kept, and each of its jobs
 *      runs again in a transaction of its own, so that a job fails only itself.
 *   4. Between batches the event loop has a turn.
 *
 * A job may run more than once, so all it knows it reads in the transaction it is given. Before each batch every job is
 * dropped whose signal has fired or whose time is over. Nothing is left behind when the queue is empty: no timer, no lock.
 */
import { type Call, EngineFault } from '@alkblobs/core/engine'
import { isBusy, isFull } from './classify.js'
import type { Connection } from './connection.js'
import type { Medium } from './medium.js'
import { type Transaction, transact } from './transaction.js'
import { locked, pause, refuseIfOver } from './waiting.js'

/** Bounds how long the event loop stands still, and how long other processes wait for the lock. */
const JOBS_MAX = 256
const BYTES_MAX = 2 * 1024 * 1024

/** What a call wants written. */
export interface Job<T> {
  /** The work, synchronous, from fresh state. */
  readonly run: (transaction: Transaction) => T
  /** The answer while there is no pool. */
  readonly absent: () => T
  /** About how many bytes of bodies it writes. */
  readonly bytes?: number
  /** Whether it must reach the disk whatever the pool's durability. */
  readonly synced?: boolean
}

interface Queued {
  readonly job: Job<unknown>
  readonly call: Call
  readonly resolve: (answer: never) => void
  readonly reject: (error: unknown) => void
  isAlone: boolean
  /** When it gives up, once it has found the file locked; and how it found out. */
  giveUpAt: number
  busy: unknown
}

export class GroupCommit {
  readonly #medium: Medium
  readonly #lockTimeoutMs: number
  #queue: Queued[] = []
  #isAtWork = false
  #wasAlone = false

  constructor(medium: Medium, lockTimeoutMs: number) {
    this.#medium = medium
    this.#lockTimeoutMs = lockTimeoutMs
  }

  /** Resolves once the job's transaction is committed. @throws what the job or its commit threw; then nothing was kept. */
  submit<T>(job: Job<T>, call: Call): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      refuseIfOver(call)
      this.#queue.push({ job, call, resolve, reject, isAlone: false, giveUpAt: Infinity, busy: undefined })
      if (!this.#isAtWork) void this.#work()
    })
  }

  async #work(): Promise<void> {
    this.#isAtWork = true
    await (this.#wasAlone ? restOfTurn() : turn())
    for (let attempts = 0; ; ) {
      const batch = this.#take()
      if (batch.length > 0) attempts = this.#commit(batch) ? 0 : attempts + 1
      this.#wasAlone = batch.length === 1
      if (this.#queue.length === 0) break
      if (attempts > 0) await pause(attempts, this.#nextEnd())
      else await turn()
    }
    this.#isAtWork = false
  }

  /** The next batch: jobs from the head of the queue that may still begin. */
  #take(): Queued[] {
    this.#queue = this.#queue.filter(mayBegin)
    let bytes = 0
    let count = 0
    for (const { job, isAlone } of this.#queue) {
      bytes += job.bytes ?? 0
      if (count > 0 && (isAlone || count === JOBS_MAX || bytes > BYTES_MAX)) break
      count++
      if (isAlone) break
    }
    return this.#queue.splice(0, count)
  }

  /** Settles the batch or puts it back. Says whether the file was free. */
  #commit(batch: Queued[]): boolean {
    try {
      this.#run(batch)
    } catch (error) {
      if (isBusy(error)) this.#putOff(batch, error)
      else if (batch.length === 1) batch[0]?.reject(error)
      else this.#separate(batch)
      return !isBusy(error)
    }
    return true
  }

  #run(batch: Queued[]): void {
    const connection = this.#medium.attach()
    if (connection === undefined) {
      for (const { job, resolve, reject } of batch) {
        try {
          resolve(job.absent() as never)
        } catch (error) {
          reject(error)
        }
      }
      return
    }
    const synced = batch.some(({ job }) => job.synced)
    const commit = () => transact(connection, synced, transaction => batch.map(({ job }) => job.run(transaction)))
    const answers = withRoom(connection, commit)
    for (const [i, { resolve }] of batch.entries()) resolve(answers[i] as never)
  }

  #separate(batch: Queued[]): void {
    for (const queued of batch) queued.isAlone = true
    this.#queue.unshift(...batch)
  }

  #putOff(batch: Queued[], busy: unknown): void {
    const giveUpAt = performance.now() + this.#lockTimeoutMs
    for (const queued of batch) {
      queued.busy = busy
      if (queued.giveUpAt === Infinity) queued.giveUpAt = Math.min(queued.call.deadlineMs, giveUpAt)
    }
    this.#queue.unshift(...batch)
  }

  #nextEnd(): number {
    return this.#queue.reduce((end, { call, giveUpAt }) => Math.min(end, call.deadlineMs, giveUpAt), Infinity)
  }
}

/** Until all promises have settled that can settle without the event loop. */
function restOfTurn(): Promise<void> {
  return new Promise(resolve => process.nextTick(resolve))
}

/** A turn of the event loop, in which everybody else gets on. */
function turn(): Promise<void> {
  return new Promise(resolve => setImmediate(resolve))
}

/** Tries once more with an empty log where the disk was full: removals must not need the very room that they would make. */
function withRoom<T>(connection: Connection, commit: () => T): T {
  try {
    return commit()
  } catch (error) {
    if (!isFull(error)) throw error
    try {
      connection.emptyLog()
    } catch {
      // There is no room to be had this way; that the disk is full is what the caller must hear.
      throw error
    }
    return commit()
  }
}

/** Rejects a job that must not begin any more. */
function mayBegin({ call, giveUpAt, busy, reject }: Queued): boolean {
  try {
    call.signal?.throwIfAborted()
    if (performance.now() >= giveUpAt) throw locked(busy)
    refuseIfOver(call)
    return true
  } catch (error) {
    reject(error)
    return false
  }
}

/** For jobs that need a pool and have none: no pool is no place to write. */
export function noPool(): never {
  throw new EngineFault('foreign', 'there is no pool in the file')
}
