/** What every part of the catalog works with: the medium, the joiner of writes, the form of keys. */
import type { Algorithm, BlobKey, Call, OpenContext } from '@alkblobs/core/engine'
import type { Connection } from './connection.js'
import { GroupCommit, type Job } from './group-commit.js'
import type { Medium } from './medium.js'
import { untilFree } from './waiting.js'

/** Items in one job: bounds how long one transaction may run when a call brings ten thousand. */
const ITEMS_MAX = 1_000

export class Pool {
  readonly medium: Medium
  readonly algorithm: Algorithm
  readonly #writes: GroupCommit
  readonly #lockTimeoutMs: number

  constructor(medium: Medium, { algorithm, lockTimeoutMs }: OpenContext) {
    this.medium = medium
    this.algorithm = algorithm
    this.#lockTimeoutMs = lockTimeoutMs
    this.#writes = new GroupCommit(medium, lockTimeoutMs)
  }

  /** Reads, between the transactions of the joiner. `absent` is the answer while there is no pool. */
  read<T>(call: Call, absent: T, look: (at: Connection) => T): Promise<T> {
    return this.#whenFree(call, () => {
      const at = this.medium.attachToLook()
      return at === undefined ? absent : look(at)
    })
  }

  /** Runs a job with whatever else waits, in one transaction. */
  write<T>(call: Call, job: Job<T>): Promise<T> {
    return this.#writes.submit(job, call)
  }

  /** Runs a job for every so many items; the answers stand in the order of the items. */
  async writeEach<I, T>(
    call: Call,
    items: readonly I[],
    jobOf: (items: readonly I[]) => Job<readonly T[]>
  ): Promise<T[]> {
    if (items.length <= ITEMS_MAX) return [...(await this.write(call, jobOf(items)))]
    const answers: T[] = []
    for (let start = 0; start < items.length; start += ITEMS_MAX) {
      answers.push(...(await this.write(call, jobOf(items.slice(start, start + ITEMS_MAX)))))
    }
    return answers
  }

  /** Makes the file and its layout, if they are not there. */
  async create(call: Call): Promise<void> {
    await this.#whenFree(call, () => this.medium.create())
  }

  /** Makes any other step that another process may stand in the way of. */
  #whenFree<T>(call: Call, step: () => T): Promise<T> {
    return untilFree(step, call, this.#lockTimeoutMs)
  }

  /** The written form of a key that SQL has put into lower-case hexadecimal digits. */
  keyOf(hex: string): BlobKey {
    return `${this.algorithm}:${hex}` as BlobKey
  }
}
