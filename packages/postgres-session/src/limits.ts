/** How much a server may say at once, so that none of it is more than this process can hold. */
import { EngineFault } from '@alkblobs/core/engine'

/** A row is no longer than this (PostgreSQL's own limit), and no answer to one statement takes more. */
export const ANSWER_LENGTH_MAX = 2 ** 30
/** Any other message: an error may quote what it is about, and a notice may hold anything. */
export const OTHER_LENGTH_MAX = 16 * 1024 * 1024
/** What a message or a value takes beside its bytes. */
const VALUE_COST = 128

/** What an answer takes so far. */
export class AnswerSize {
  #size = 0

  begin(): void {
    this.#size = 0
  }

  /** @throws EngineFault `exhausted` if it was too much already: one row may be as long as it likes. */
  add(values: number, length: number): void {
    if (this.#size > ANSWER_LENGTH_MAX) throw new EngineFault('exhausted', 'an answer of the server is too long')
    this.#size += length + (values + 1) * VALUE_COST
  }
}
