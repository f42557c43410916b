/** A step that many wait for and that succeeds once. */

/** A failure is forgotten, so that whoever comes next tries again. */
export class Once {
  #step: Promise<void> | undefined
  #isDone = false

  /** Makes the step, or waits for who is making it. `undefined` once it has succeeded: then there is nothing to wait for. */
  run(make: () => Promise<void>): Promise<void> | undefined {
    if (this.#isDone) return undefined
    this.#step ??= this.#made(make())
    return this.#step
  }

  /** Whether the step was made, or is being made. */
  get isBegun(): boolean {
    return this.#step !== undefined
  }

  /** Forgets a success, or the attempt under way: the next caller makes the step anew. */
  forget(): void {
    this.#step = undefined
    this.#isDone = false
  }

  #made(attempt: Promise<void>): Promise<void> {
    const step: Promise<void> = attempt.then(
      () => {
        if (this.#step === step) this.#isDone = true
      },
      error => {
        if (this.#step === step) this.#step = undefined
        throw error
      }
    )
    return step
  }
}
