/**
 * Joins the items of concurrent calls: what waits when a transaction begins is committed together, and pays for one sync.
 *
 *   1. A call queues its items and asks for a turn of the event loop. All that queues in the same turn joins.
 *   2. While a lane is free it takes a batch of one kind from the head of the queue, up to ITEMS_MAX and BYTES_MAX, and runs it.
 *   3. An item that could not be decided beside others (somebody holds its row), and every item of a batch that failed, runs
 *      again alone, where it may wait: so an item fails only itself, and nobody waits behind a locked row of somebody else's.
 *   4. A lone item that meets contention is tried again, in turn with the others, until its deadline or the lock timeout.
 *
 * A batch whose commit was not answered is not run again: each of its items is told that its outcome is unknown.
 */
import type { Call } from '@alkblobs/core/engine'
import { EngineFault } from '@alkblobs/core/engine'
import { classifyPostgres } from '@alkblobs/postgres-session'
import { giveUpAt, isContention, pause, refuseIfOver } from './waiting.js'

/** Bounds how long one transaction runs and how much text one statement carries. */
const ITEMS_MAX = 256
const BYTES_MAX = 2 * 1024 * 1024

/** The answer for an item that must run again, alone. */
export const AGAIN = Symbol('again')

export interface JoinedWork<I, O> {
  /** Decides items in one transaction; alone it may wait a moment for locked rows. Outcomes stand in the order of the items. */
  readonly run: (items: readonly I[], alone: boolean, call: Call) => Promise<readonly (O | typeof AGAIN)[]>
  /** About how many bytes of bodies an item carries. */
  readonly bytesOf: (item: I) => number
  /** Items of one name that are not in one batch would only wait for each other: they take turns. */
  readonly nameOf: (item: I) => string
  /** Whether an item must not share a transaction. */
  readonly isAlone: (item: I) => boolean
  /** A batch is of one kind. */
  readonly kindOf: (item: I) => string
}

interface Queued<I, O> {
  readonly item: I
  readonly call: Call
  readonly resolve: (outcome: O) => void
  readonly reject: (error: unknown) => void
  /** How often it lost alone, and when that is enough. */
  attempts: number
  giveUpAt: number | undefined
}

export class Joiner<I, O> {
  readonly #work: JoinedWork<I, O>
  readonly #lanesMax: number
  readonly #lockTimeoutMs: number
  #queue: Queued<I, O>[] = []
  /** Kept apart, and in lanes of their own, because they may wait. */
  #lone: Queued<I, O>[] = []
  /** Names of what batches are deciding now. */
  readonly #underWay = new Set<string>()
  #lanes = 0
  #loneLanes = 0
  #hasTurn = false

  /** `lanes`: how many transactions may be under way at once, of batches and of lone items each. */
  constructor(work: JoinedWork<I, O>, lanes: number, lockTimeoutMs: number) {
    this.#work = work
    this.#lanesMax = lanes
    this.#lockTimeoutMs = lockTimeoutMs
  }

  /** Resolves once every item's transaction is committed. @throws what the first of them failed with. */
  async submit(items: readonly I[], call: Call): Promise<O[]> {
    refuseIfOver(call)
    return Promise.all(
      items.map(
        item =>
          new Promise<O>((resolve, reject) => {
            const queued = { item, call, resolve, reject, attempts: 0, giveUpAt: undefined }
            if (this.#work.isAlone(item)) this.#lone.push(queued)
            else this.#queue.push(queued)
            this.#askForTurn()
          })
      )
    )
  }

  #askForTurn(): void {
    if (this.#hasTurn) return
    this.#hasTurn = true
    setImmediate(() => {
      this.#hasTurn = false
      this.#start()
    })
  }

  #start(): void {
    while (this.#lanes < this.#lanesMax && this.#queue.length > 0) {
      const batch = this.#take()
      if (batch.length === 0) break
      const names = batch.map(({ item }) => this.#work.nameOf(item))
      for (const name of names) this.#underWay.add(name)
      this.#lanes++
      void this.#serve(batch).finally(() => {
        this.#lanes--
        for (const name of names) this.#underWay.delete(name)
        this.#start()
      })
    }
    while (this.#loneLanes < this.#lanesMax && this.#lone.length > 0) {
      const queued = this.#lone.shift() as Queued<I, O>
      this.#loneLanes++
      void this.#serveAlone(queued).finally(() => {
        this.#loneLanes--
        this.#start()
      })
    }
  }

  /** The next batch: items from the head of the queue that may still begin. */
  #take(): Queued<I, O>[] {
    this.#queue = this.#queue.filter(mayBegin)
    const batch: Queued<I, O>[] = []
    const left: Queued<I, O>[] = []
    let bytes = 0
    let next = 0
    for (; next < this.#queue.length && batch.length < ITEMS_MAX && bytes < BYTES_MAX; next++) {
      const queued = this.#queue[next] as Queued<I, O>
      const kind = this.#work.kindOf(queued.item)
      const isOther = batch[0] !== undefined && this.#work.kindOf(batch[0].item) !== kind
      if (isOther || this.#underWay.has(this.#work.nameOf(queued.item))) {
        left.push(queued)
        continue
      }
      bytes += this.#work.bytesOf(queued.item)
      batch.push(queued)
    }
    this.#queue = left.concat(this.#queue.slice(next))
    return batch
  }

  async #serve(batch: readonly Queued<I, O>[]): Promise<void> {
    // The latest deadline of all: one call that has little time left must not take the others down with it.
    const deadlineMs = Math.max(...batch.map(({ call }) => call.deadlineMs))
    try {
      const items = batch.map(({ item }) => item)
      const outcomes = await this.#work.run(items, false, { deadlineMs })
      for (const [i, queued] of batch.entries()) {
        const outcome = outcomes[i] as O | typeof AGAIN
        if (outcome === AGAIN) this.#lone.push(queued)
        else queued.resolve(outcome)
      }
    } catch (error) {
      if (isFinal(error)) for (const { reject } of batch) reject(error)
      else this.#lone.push(...batch)
    }
  }

  /** One attempt. An item that lost goes back to the end of the queue after a while, so that no lane is held by it. */
  async #serveAlone(queued: Queued<I, O>): Promise<void> {
    const { item, call, resolve, reject } = queued
    try {
      refuseIfOver(call)
      const outcome = await this.#attempt(item, call)
      if (outcome !== AGAIN) return resolve(outcome)
      queued.giveUpAt ??= giveUpAt(call, this.#lockTimeoutMs)
      if (performance.now() >= queued.giveUpAt) {
        throw new EngineFault('conflict', 'others were in the way for longer than this call may wait')
      }
      queued.attempts++
      void pause(queued.attempts, queued.giveUpAt).then(() => {
        this.#lone.push(queued)
        this.#start()
      })
    } catch (error) {
      reject(error)
    }
  }

  async #attempt(item: I, call: Call): Promise<O | typeof AGAIN> {
    try {
      return (await this.#work.run([item], true, { deadlineMs: call.deadlineMs }))[0] as O | typeof AGAIN
    } catch (error) {
      if (isContention(error)) return AGAIN
      throw error
    }
  }
}

/** Failures that another attempt cannot mend, or must not. */
function isFinal(error: unknown): boolean {
  return ['outcome-unknown', 'newer', 'foreign'].includes(classifyPostgres(error))
}

/** Rejects an item that must not begin any more. */
function mayBegin<I, O>({ call, reject }: Queued<I, O>): boolean {
  try {
    refuseIfOver(call)
    return true
  } catch (error) {
    reject(error)
    return false
  }
}
