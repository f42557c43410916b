/**
 * `get`: what its catalog has at once is answered without a call into the engine.
 *
 * Gets that are asked for in one run of promises are served together, when the one that asked first comes to its turn among them: where
 * an engine reads many in one transaction that is a sixth of what a get of 16 KiB costs. Each reads a state of the pool that was there after
 * it was asked for and before it is answered, and none of the caller's code runs in between, so nobody can tell this from reading at once.
 */
import { isTraced, type OperationTrace, traced } from './channels.js'
import type { StoreConfig } from './config.js'
import type { Derivation } from './derive.js'
import type { FoundEntry } from './engine.js'
import { type BlobKey, parseKey } from './key.js'
import type { Lifecycle } from './lifecycle.js'
import type { Pool } from './pool.js'
import { assertLength } from './reading.js'
import { type GetOptions, getOptionsOf } from './store-options.js'
import { StoredBlob } from './stored-blob.js'

interface GettingParts {
  readonly config: StoreConfig
  readonly pool: Pool
  readonly derivation: Derivation
  readonly lifecycle: Lifecycle
}

interface HowToRead {
  readonly signal: AbortSignal | undefined
  readonly verify: boolean
}

type Answer = (blob: StoredBlob | undefined | Promise<StoredBlob | undefined>) => void

interface Asked {
  readonly key: BlobKey
  readonly how: HowToRead
  readonly answer: Answer
  blob: StoredBlob | undefined
  failure: { readonly cause: unknown } | undefined
}

const SETTLED = Promise.resolve()

export class Getting {
  readonly #parts: GettingParts
  #asked: Asked[] = []
  /** What is read now. A field, and the two functions made once, so that a burst of gets makes no closure. */
  #reading: readonly Asked[] = []
  readonly #readEach = () => {
    for (const asked of this.#reading) this.#read(asked)
  }
  readonly #serve = () => {
    const asked = this.#asked
    this.#asked = []
    this.#serveAll(asked)
  }

  constructor(parts: GettingParts) {
    this.#parts = parts
  }

  /**
   * Counts as running from when it is asked for: a store that is closed meanwhile waits for it.
   * @throws StoreClosedError, InvalidKeyError, InvalidArgumentError, EngineError, or the signal's own reason.
   */
  get(key: string, options: GetOptions | undefined): Promise<StoredBlob | undefined> {
    if (isTraced('get')) return this.#watched(key, options)
    return new Promise(answer => {
      const { config, lifecycle } = this.#parts
      lifecycle.assertOpen()
      this.#ask(parseKey(key, config.algorithm), getOptionsOf(options, config.verify), answer)
    })
  }

  /** Not only what the engine does: a key that is none, and a signal that has fired, are told of as well. */
  #watched(key: string, options: GetOptions | undefined): Promise<StoredBlob | undefined> {
    const { config, lifecycle, pool } = this.#parts
    return lifecycle.run(() =>
      traced('get', pool.durability, async trace => {
        const parsed = parseKey(key, config.algorithm)
        trace.key = parsed
        return this.#call(parsed, getOptionsOf(options, config.verify), trace)
      })
    )
  }

  /** Gives `answer` the blob, `undefined` if there is none, or a promise that rejects. @throws StoreClosedError */
  #ask(key: BlobKey, how: HowToRead, answer: Answer): void {
    const { lifecycle, pool } = this.#parts
    lifecycle.enter()
    const asked: Asked = { key, how, answer, blob: undefined, failure: undefined }
    if (!pool.catalog.answersNow || pool.ready() !== undefined) answer(this.#waitedFor(asked))
    else if (this.#asked.push(asked) === 1) void SETTLED.then(this.#serve)
  }

  #serveAll(all: readonly Asked[]): void {
    this.#reading = all
    if (all.length === 1) this.#readEach()
    else this.#parts.pool.catalog.readTogether(this.#readEach)
    this.#reading = []
    // Only now: nobody's code is to run while a transaction is open.
    for (const asked of all) this.#answer(asked)
  }

  /** Where the catalog has it at once; a call costs more than such a read does. */
  #read(asked: Asked): void {
    try {
      const found = this.#parts.pool.catalog.readNow(asked.key)
      if (found !== undefined) asked.blob = this.#blob(found, asked.how)
    } catch (error) {
      asked.failure = { cause: error }
    }
  }

  #answer(asked: Asked): void {
    const { answer, blob, failure } = asked
    if (blob === undefined && failure === undefined) {
      answer(this.#waitedFor(asked))
    } else {
      this.#parts.lifecycle.leave()
      answer(failure === undefined ? blob : Promise.reject(failure.cause))
    }
  }

  /** By a call, where the catalog does not have it at once. */
  async #waitedFor({ key, how }: Asked): Promise<StoredBlob | undefined> {
    try {
      return await this.#call(key, how)
    } finally {
      this.#parts.lifecycle.leave()
    }
  }

  async #call(key: BlobKey, how: HowToRead, trace?: OperationTrace): Promise<StoredBlob | undefined> {
    const { pool } = this.#parts
    const waiting = pool.ready()
    if (waiting !== undefined) await waiting
    const found = await pool.catalog.read(key, how.signal)
    if (found === undefined) return undefined
    if (trace !== undefined) Object.assign(trace, { length: found.entry.length, tier: found.entry.place.tier })
    return this.#blob(found, how)
  }

  #blob({ entry, body }: FoundEntry, { signal, verify }: HowToRead): StoredBlob {
    const { pool, derivation, lifecycle } = this.#parts
    assertLength(entry)
    return new StoredBlob({ pool, derivation, found: { entry, body }, verify, signal, lifecycle })
  }
}
