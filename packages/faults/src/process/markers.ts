/**
 * The words that a process under test and its killer exchange: one line of JSON each, from the process over stdout and to it over stdin.
 * A line that begins otherwise is the process's own business.
 */
import { writeSync } from 'node:fs'
import { createInterface, type Interface } from 'node:readline'

/** What every line of this protocol begins with. */
export const MARK = '@@fault '

/** Something that the process said. `at` names a phase at which it waits; anything else is a fact that it tells in passing. */
export interface Said {
  readonly at?: string
  readonly [name: string]: unknown
}

/** The side of the process that is to be killed. */
export class Markers {
  readonly #lines: Interface
  readonly #told: string[] = []
  readonly #waiting: ((line: string) => void)[] = []

  constructor() {
    this.#lines = createInterface({ input: process.stdin })
    this.#lines.on('line', line => {
      const waiting = this.#waiting.shift()
      if (waiting === undefined) this.#told.push(line)
      else waiting(line)
    })
  }

  /** Says something, and has said it when this returns: a kill after that cannot take it back. */
  say(said: Said): void {
    writeSync(1, `${MARK}${JSON.stringify(said)}\n`)
  }

  /** Says that a phase is reached, and waits there until it is told to go on. Answers what it was told. */
  async reach(at: string, more: Readonly<Record<string, unknown>> = {}): Promise<string> {
    const told = this.told()
    this.say({ ...more, at })
    return await told
  }

  /** The next line that it is told. */
  told(): Promise<string> {
    const line = this.#told.shift()
    return line === undefined ? new Promise(resolve => this.#waiting.push(resolve)) : Promise.resolve(line)
  }

  /** Hears nothing any more, so that the process can end. */
  close(): void {
    this.#lines.close()
  }
}
