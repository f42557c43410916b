/** A producer being pulled: told exactly once when no more is wanted, and never waited for when it cannot answer. */

import { InvalidContentError } from './errors.js'

/** What a source of content looks like from here. A chunk belongs to the producer again once the next one is asked for. */
export interface Producer {
  next(): Promise<IteratorResult<unknown>>
  /** Nobody wants more. Settles when the producer has cleaned up. */
  cancel(reason: unknown): Promise<unknown>
}

/** Longest wait for a producer that was told to stop and has yet to clean up, in milliseconds. */
const CANCEL_GRACE_MS = 1_000

export class Pull {
  readonly #producer: Producer
  #waiting = false
  #over = false

  constructor(producer: Producer) {
    this.#producer = producer
  }

  async next(): Promise<IteratorResult<unknown>> {
    this.#waiting = true
    try {
      const step: unknown = await this.#producer.next()
      if (!isStep(step)) throw new InvalidContentError('the content is no async iterable: a step of it is no object')
      this.#over = step.done === true
      return step
    } catch (error) {
      this.#over = true
      throw error
    } finally {
      this.#waiting = false
    }
  }

  /** Tells the producer once. One that hangs in its own clean-up, or in the pull it is to stop, is not waited for. */
  async cancel(reason: unknown): Promise<void> {
    if (this.#over) return
    this.#over = true
    const stopped = this.#producer.cancel(reason).catch(ownFailure)
    if (this.#waiting) return
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>(resolve => {
      timer = setTimeout(resolve, CANCEL_GRACE_MS)
    })
    await Promise.race([stopped, late])
    clearTimeout(timer)
  }
}

function isStep(value: unknown): value is IteratorResult<unknown> {
  return typeof value === 'object' && value !== null
}

/** The producer failed while cleaning up after a put that has failed already; the put's own cause is the one to report. */
function ownFailure(): void {}
