/**
 * Windows on their way into an object, in one COPY for as long as they follow each other.
 *
 * Only COPY takes bytes from the driver as they are; its condition, which the server looks at for each row before it keeps it, is what
 * writes them. No row passes it, so the table is there for the types of its columns alone. That takes an eighth of the processor
 * time of hexadecimal or base64 text, and a COPY that goes on leaves the server no pause between two windows.
 *
 * A COPY that waits for its producer is no idle transaction to the server, which would wait with it: so it is ended in the turn in
 * which no further window comes, and after COPY_MS_MAX anyway.
 */
import { copyLongRows, type Field, type HeldSession, int8, oid } from '@alkblobs/postgres-session'

const COPY_MS_MAX = 5_000

interface Window {
  readonly fields: readonly Field[]
  readonly left: () => void
}

/** The statement for a table that has the columns. */
export function windowCopy(entries: string): string {
  return `COPY ${entries} (loid, length, key) FROM STDIN (FORMAT binary) WHERE lo_put(loid, length, key) IS NULL`
}

export class WindowCopy {
  /** Settles when the server has taken every window, or refused one. */
  readonly ended: Promise<void>
  readonly #oid: number
  readonly #untilMs = performance.now() + COPY_MS_MAX
  #give: (window: Window | undefined) => void = () => undefined
  #next = this.#comes()
  #isEnding = false
  #turn: NodeJS.Immediate | undefined

  constructor(session: HeldSession, statement: string, objectOid: number) {
    this.#oid = objectOid
    this.ended = session.copyIn(statement, copyLongRows(this.#rows()))
    this.ended.catch(() => undefined)
  }

  /** Whether it takes another window. */
  get isOpen(): boolean {
    return !this.#isEnding && performance.now() < this.#untilMs
  }

  /** Resolves when the bytes are on their way: they are the caller's again. @throws what the server refused so far. */
  async write(bytes: Uint8Array, at: number): Promise<void> {
    clearImmediate(this.#turn)
    const left = new Promise<void>(resolve => {
      this.#give({ fields: [oid(this.#oid), int8(at), bytes], left: resolve })
    })
    await Promise.race([left, this.ended])
    this.#turn = setImmediate(() => void this.end())
  }

  /** Takes no more windows; settles as `ended` does. */
  end(): Promise<void> {
    clearImmediate(this.#turn)
    this.#isEnding = true
    this.#give(undefined)
    return this.ended
  }

  #comes(): Promise<Window | undefined> {
    return new Promise(resolve => {
      this.#give = resolve
    })
  }

  async *#rows(): AsyncGenerator<readonly Field[]> {
    while (!this.#isEnding) {
      const window = await this.#next
      if (window === undefined) return
      this.#next = this.#comes()
      // Asked for the next row, the copy has sent this one.
      yield window.fields
      window.left()
    }
  }
}
