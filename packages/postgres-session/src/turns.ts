/**
 * Who speaks over a connection: the driver, or exchanges of ours. Either may ask several things at once; the other one waits until all
 * of it is answered. First come, first served, so what is asked in order runs in order.
 */
export type Speaker = 'driver' | 'lane'

export class Turns {
  #speaker: Speaker = 'driver'
  #speaking = 0
  readonly #waiting: { readonly speaker: Speaker; readonly begin: () => void }[] = []

  /** Resolves when it may speak; `undefined`: at once. Each is followed by one `leave`. */
  enter(speaker: Speaker): Promise<void> | undefined {
    if (this.#waiting.length === 0 && this.#mayBegin(speaker)) {
      this.#begin(speaker)
      return undefined
    }
    return new Promise(begin => this.#waiting.push({ speaker, begin }))
  }

  leave(): void {
    this.#speaking -= 1
    for (let [next] = this.#waiting; next !== undefined && this.#mayBegin(next.speaker); [next] = this.#waiting) {
      this.#waiting.shift()
      this.#begin(next.speaker)
      next.begin()
    }
  }

  #mayBegin(speaker: Speaker): boolean {
    return this.#speaking === 0 || this.#speaker === speaker
  }

  #begin(speaker: Speaker): void {
    this.#speaker = speaker
    this.#speaking += 1
  }
}
