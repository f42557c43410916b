/**
 * One call into an engine: a deadline, and one shape for every failure. What an engine throws is wrapped here, once.
 */
import { Deadlines } from './deadlines.js'
import type { Call, Catalog, Engine, ErrorCode } from './engine.js'
import { BlobError, EngineError, PoolRefusedError, StoreClosedError } from './errors.js'
import type { BlobKey } from './key.js'
import { Turns } from './turns.js'

/** What to tell the user for each kind of failure. */
export const ADVICE: Record<ErrorCode, string> = {
  conflict: 'another writer was in the way; try again',
  transient: 'the medium is not available now; try again',
  exhausted: 'out of descriptors or connections; do less at once, or raise the limit',
  full: 'no space is left on the medium; nothing of this call was kept',
  denied: 'the medium refused access; check its permissions',
  pooled: 'connect to the server itself, or through a proxy that pools by session',
  corrupt: 'the medium contradicts itself; run verify, or restore it from a backup',
  gone: 'the bytes are not there; run verify',
  foreign: 'the medium holds something that is not a pool; choose another place',
  liveness: 'a table that judges liveness cannot be trusted to say what it holds; see the cause',
  newer: 'the pool was made by a later version of this library; upgrade to write to it',
  'outcome-unknown': 'no answer within the deadline; the call may or may not have taken effect, trying again is safe',
  unknown: 'see the cause'
}

export interface CallOptions {
  readonly signal?: AbortSignal | undefined
  readonly key?: BlobKey | undefined
  /** What a missed deadline means: a call without effects has simply failed. */
  readonly readOnly?: boolean
}

interface CallEnds<T, R> {
  /** What core makes of the answer, as soon as it is there. @throws what the call is to reject with: an answer that breaks the contract. */
  readonly take?: (answer: T) => R
  /** Frees what a call that missed its deadline brings after all: nobody else knows of it any more. */
  readonly abandon?: (late: T) => unknown
}

export class EngineCalls {
  readonly #engine: Engine
  readonly #timeoutMs: number
  readonly #deadlines = new Deadlines()
  /** Calls whose method has not settled, those that missed their deadline included. */
  #running = 0
  #idle: (() => void) | undefined
  readonly #turns = new Turns()
  #isClosed = false

  constructor(engine: Engine, timeoutMs: number) {
    this.#engine = engine
    this.#timeoutMs = timeoutMs
  }

  /**
   * Runs one engine method and answers what `ends.take` makes of its answer; rejects with what that throws, with an EngineError, or with
   * PoolRefusedError where the pool must not be used.
   */
  run<T, R = T>(
    operation: string,
    options: CallOptions,
    method: (call: Call) => Promise<T>,
    ends?: CallEnds<T, R>
  ): Promise<R> {
    if (this.#isClosed) return Promise.reject(new StoreClosedError())
    this.#turns.enter()
    const deadlineMs = performance.now() + this.#timeoutMs
    const { signal } = options
    return new Promise<R>((resolve, reject) => {
      let late = false
      const ticket = this.#deadlines.watch(deadlineMs, () => {
        late = true
        reject(this.#late(operation, options))
      })
      this.#running++
      // Once for each call of every operation, so no promise more than it takes: `finally` alone would make three.
      const end = () => {
        this.#deadlines.end(ticket)
        if (--this.#running === 0) this.#idle?.()
      }
      const start = () => {
        if (late) return end()
        attempt(() => method(signal === undefined ? { deadlineMs } : { deadlineMs, signal })).then(
          answer => {
            end()
            if (late) freeLate(answer, ends?.abandon)
            else this.#take(answer, ends?.take, resolve, reject)
          },
          error => {
            end()
            reject(isReasonOf(signal, error) ? error : this.wrap(operation, error, options.key))
          }
        )
      }
      // Many reads that are begun at once would all be answered in one turn; what has effects keeps its place.
      if (options.readOnly === true && this.#turns.isBusy) this.#turns.next(start)
      else start()
    })
  }

  #take<T, R>(
    answer: T,
    take: CallEnds<T, R>['take'],
    resolve: (taken: R) => void,
    reject: (e: unknown) => void
  ): void {
    try {
      // Without `take` the answer is what is wanted: R is T then.
      const taken = take === undefined ? (answer as unknown as R) : take(answer)
      if (this.#turns.isSpent) setImmediate(resolve, taken)
      else resolve(taken)
    } catch (error) {
      reject(error)
    }
  }

  /**
   * What a part of the engine has at once; `undefined` where a call has to ask for it: the part does not say or fails (the call then fails
   * too, in its one shape), or this turn of the event loop has lasted long enough. No closure is taken here: optimized code that holds on
   * to one of a single call is thrown away with it, at the next collection of garbage.
   */
  readNow<Asked extends unknown[], T>(part: { readNow?(...asked: Asked): T }, ...asked: Asked): T | undefined {
    this.#turns.enter()
    if (part.readNow === undefined || this.#isClosed || this.#turns.isSpent) return undefined
    try {
      return part.readNow(...asked)
    } catch {
      return undefined
    }
  }

  /** Runs `reads`, which throws nothing, as the catalog wants many to be read. What was not read is asked for by a call. */
  readTogether(catalog: Pick<Catalog, 'readTogether'>, reads: () => void): void {
    try {
      if (catalog.readTogether === undefined || this.#isClosed) reads()
      else catalog.readTogether(reads)
    } catch {
      // Whoever has no answer now asks for it, and hears of a failure that lasts.
    }
  }

  /** Gives an engine's error its one shape. Errors of ours pass as they are. */
  wrap(operation: string, error: unknown, key?: BlobKey): unknown {
    if (error instanceof BlobError) return error
    const kind = this.#kindOf(error)
    if (kind === 'newer' || kind === 'foreign')
      return new PoolRefusedError(kind, `${this.#engine.name}: ${ADVICE[kind]}`, error)
    return new EngineError(this.#engine.name, operation, kind, ADVICE[kind], { key, cause: error })
  }

  #kindOf(error: unknown): ErrorCode {
    try {
      return this.#engine.classify(error)
    } catch {
      // ENG-CLASSIFY-1 rules it out; a call that never settles because of it would be worse.
      return 'unknown'
    }
  }

  /** An engine that answered what its contract rules out; better to stop than to act on it. */
  broken(operation: string, clause: string): EngineError {
    return new EngineError(this.#engine.name, operation, 'corrupt', `it broke its contract (${clause})`)
  }

  /** Waits for calls under way, those that ignored their deadline included, then closes; each for one timeout at most. */
  async close(): Promise<void> {
    this.#isClosed = true
    try {
      await this.#within(this.#untilIdle())
      await this.#within(attempt(() => this.#engine.close()))
    } finally {
      this.#deadlines.stop()
    }
  }

  /** Settles once nothing runs and no read waits for its turn; no call is taken any more when this is asked. */
  #untilIdle(): Promise<void> {
    return new Promise(resolve => {
      this.#idle = resolve
      if (this.#running === 0) resolve()
    })
  }

  /** Waits for at most one timeout; what takes longer goes on without anybody waiting. */
  #within(work: Promise<unknown>): Promise<void> {
    return new Promise<void>((resolve, reject) => {
      const ticket = this.#deadlines.watch(performance.now() + this.#timeoutMs, resolve)
      work
        .then(
          () => resolve(),
          error => reject(this.wrap('close', error))
        )
        .finally(() => this.#deadlines.end(ticket))
    })
  }

  #late(operation: string, options: CallOptions): EngineError {
    const kind = options.readOnly === true ? 'transient' : 'outcome-unknown'
    return new EngineError(this.#engine.name, operation, kind, `${ADVICE[kind]} (waited ${this.#timeoutMs} ms)`, {
      key: options.key
    })
  }
}

/** Closes engines one after the other, those that stand on others first: these were opened before them. @throws what any of them does. */
export async function closeAll(calls: readonly EngineCalls[]): Promise<void> {
  const closed: PromiseSettledResult<void>[] = []
  for (const each of calls.toReversed()) closed.push(...(await Promise.allSettled([each.close()])))
  for (const media of closed) if (media.status === 'rejected') throw media.reason
}

/** A method that throws before it returns a promise fails like one that rejects. */
function attempt<T>(method: () => Promise<T>): Promise<T> {
  try {
    return Promise.resolve(method())
  } catch (error) {
    return Promise.reject(error)
  }
}

/** Frees what came too late; nobody waits for it, so nobody can be told if that fails. */
function freeLate<T>(value: T, abandon: ((late: T) => unknown) | undefined): void {
  attempt(async () => abandon?.(value)).catch(() => undefined)
}

/** A cancelled call rejects with the signal's own reason, whatever that is. */
function isReasonOf(signal: AbortSignal | undefined, error: unknown): boolean {
  return signal?.aborted === true && error === signal.reason
}
