/**
 * Waiting for user code (a producer, a consumer, a liveness source) without waiting for ever: the wait ends when the
 * caller's signal fires or the store closes.
 *
 * One interrupt serves one operation, which waits for one thing at a time. Unlike `Promise.race` with a long-lived
 * promise it keeps nothing of the waits that are over.
 */
import { setMaxListeners } from 'node:events'

export class Interrupt {
  readonly #signals: readonly AbortSignal[]
  readonly #onAbort = () => {
    const reason = this.reason()
    this.#stop?.(reason)
    this.#listener?.(reason)
  }
  #listener: ((reason: unknown) => void) | undefined
  #stop: ((reason: unknown) => void) | undefined

  constructor(...signals: readonly (AbortSignal | undefined)[]) {
    this.#signals = signals.filter(signal => signal !== undefined)
    // Any number of operations may hang on one signal; each takes its listener off when it is over.
    if (this.#signals.length > 0) setMaxListeners(0, ...this.#signals)
    for (const signal of this.#signals) signal.addEventListener('abort', this.#onAbort)
  }

  /** The reason of the signal that fired, or `undefined`. */
  reason(): unknown {
    return this.#signals.find(signal => signal.aborted)?.reason
  }

  get fired(): boolean {
    return this.#signals.some(signal => signal.aborted)
  }

  throwIfFired(): void {
    for (const signal of this.#signals) signal.throwIfAborted()
  }

  /** Tells the one listener of the first signal to fire, whether anything is being waited for or not. */
  onFire(listener: (reason: unknown) => void): void {
    this.#listener = listener
  }

  /** Settles as `promise` does, or rejects with the reason of the first signal to fire; the promise is then left alone. */
  wait<T>(promise: PromiseLike<T>): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      if (this.fired) reject(this.reason())
      this.#stop = reject
      promise.then(resolve, reject)
    }).finally(() => {
      this.#stop = undefined
    })
  }

  /** Takes the listeners off the signals; the interrupt must not be used afterwards. */
  dispose(): void {
    for (const signal of this.#signals) signal.removeEventListener('abort', this.#onAbort)
  }
}
