/**
 * Who speaks over a connection: the driver, exchanges of ours, or a copy. The first two may ask several things at once; the others wait
 * until all of it is answered. A copy is alone. First come, first served, so what is asked in order runs in order.
 */
export type Speaker = 'driver' | 'lane' | 'copy'

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
    return this.#speaking === 0 || (this.#speaker === speaker && speaker !== 'copy')
  }

  #begin(speaker: Speaker): void {
    this.#speaker = speaker
    this.#speaking += 1
  }
}
