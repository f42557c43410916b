/**
 * Liveness sources: the embedding application's word on which keys it still references. A source that fails, hangs or
 * says something that is no key ends the sweep, since not knowing must never look like not referenced.
 */
import { InvalidArgumentError } from '../errors.js'
import { Interrupt } from '../interrupt.js'
import { type Algorithm, type BlobKey, parseKey } from '../key.js'
import { SOURCE_TIMEOUT_MS } from '../limits.js'
import { KeyList } from './key-list.js'
import { KeySet } from './key-set.js'
import { SweepStop } from './report.js'

type Keys = Iterable<string> | AsyncIterable<string>

interface NamedSource {
  readonly name: string
  /** Longest silence before the source counts as failed, in milliseconds. Default 10 minutes. */
  readonly timeoutMs?: number
}

/** Enumerates every live key; absent and repeated keys are harmless. */
export interface EnumeratingSource extends NamedSource {
  live(signal: AbortSignal): Keys | Promise<Keys>
}

/** Answers, for a batch of candidates, which of them are live. */
export interface AnsweringSource extends NamedSource {
  isLive(keys: readonly BlobKey[], signal: AbortSignal): Keys | Promise<Keys>
}

/** A table of the application in the catalog's own database: the server judges it, its rows never come here. */
export interface TableSource {
  /** Quoted as it is; `schema.table` for one outside the search path. */
  readonly table: string
  /** `text` in the written form of keys, or `bytea` of their 32 raw bytes. */
  readonly column: string
}

export type LivenessSource = EnumeratingSource | AnsweringSource

/** A source in force until it is removed. */
export interface Protection {
  readonly name: string
  /** Takes the source out again; idempotent. */
  remove(): void
}

/** @throws InvalidArgumentError for anything that is no source. */
export function assertSource(source: LivenessSource): void {
  if (typeof source !== 'object' || source === null) throw new InvalidArgumentError('source', 'a liveness source')
  if (typeof source.name !== 'string' || source.name === '') throw new InvalidArgumentError('source.name', 'a name')
  const live = 'live' in source && typeof source.live === 'function'
  const isLive = 'isLive' in source && typeof source.isLive === 'function'
  if (live === isLive)
    throw new InvalidArgumentError('source', 'an object with either live(signal) or isLive(keys, signal)')
  const { timeoutMs } = source
  if (timeoutMs !== undefined && !(Number.isSafeInteger(timeoutMs) && timeoutMs > 0 && timeoutMs < 2 ** 31)) {
    throw new InvalidArgumentError('source.timeoutMs', 'a positive whole number of milliseconds')
  }
}

export function isTable(source: LivenessSource | TableSource): source is TableSource {
  return typeof source === 'object' && source !== null && 'table' in source
}

/** @throws InvalidArgumentError for names that are none. */
export function assertTable({ table, column }: TableSource): void {
  const isName = (value: unknown) =>
    typeof value === 'string' && value !== '' && value.length <= 255 && !value.includes('\0')
  if (!isName(table)) throw new InvalidArgumentError('source.table', 'the name of a table')
  if (!isName(column)) throw new InvalidArgumentError('source.column', 'the name of a column')
}

/** Says whether a key is live. */
export type Answer = Pick<ReadonlySet<BlobKey>, 'has'>

/** What the sources said when they were asked, and go on saying for those that answer in batches. */
export interface LiveKeys {
  /** Which of these keys are live; to be asked about no others. */
  among(keys: readonly BlobKey[]): Promise<Answer>
}

/** Takes keys away in batches, as their raw digests one behind the other. */
type Load = (digests: Uint8Array) => Promise<void>

/** The sources as they are registered now, for one sweep, delete, verification or `why` to ask. */
export class LivenessView {
  readonly #sources: readonly LivenessSource[]
  readonly #algorithm: Algorithm
  readonly #signals: readonly AbortSignal[]
  #loadFailure: unknown

  constructor(sources: Iterable<LivenessSource>, algorithm: Algorithm, signals: readonly (AbortSignal | undefined)[]) {
    this.#sources = [...sources]
    this.#algorithm = algorithm
    this.#signals = signals.filter(signal => signal !== undefined)
  }

  /**
   * Asks the question: reads every enumerating source, from now on. `load` takes their keys away in batches; without one they
   * are kept here, compactly. Each asking has an answer of its own, for an older one must not stand in for a newer.
   */
  async ask(load?: Load): Promise<LiveKeys> {
    const kept = new KeySet(this.#algorithm)
    for (const source of this.#sources) {
      if (!('live' in source)) continue
      if (load === undefined) await this.#collect(source, source.live.bind(source), value => kept.add(value))
      else await this.#drain(source, load)
    }
    return { among: keys => this.#among(keys, kept) }
  }

  /** The names of the sources that call this one key live. */
  async namesFor(key: BlobKey): Promise<string[]> {
    const names: string[] = []
    for (const source of this.#sources) {
      let live = false
      const keys = 'live' in source ? source.live.bind(source) : (signal: AbortSignal) => source.isLive([key], signal)
      await this.#collect(source, keys, found => {
        live = this.#keyOf(found) === key || live
      })
      if (live) names.push(source.name)
    }
    return names
  }

  async #among(keys: readonly BlobKey[], enumerated: KeySet): Promise<Answer> {
    if (!this.#sources.some(source => 'isLive' in source)) return enumerated
    const live = new Set(keys.filter(key => enumerated.has(key)))
    for (const source of this.#sources) {
      if (!('isLive' in source)) continue
      const asked = keys.filter(key => !live.has(key))
      if (asked.length === 0) break
      await this.#collect(
        source,
        signal => source.isLive(asked, signal),
        value => live.add(this.#keyOf(value))
      )
    }
    return live
  }

  /** What a source that can wait has said is taken away now and then; what one that cannot says at once is gathered compactly. */
  async #drain(source: EnumeratingSource, load: Load): Promise<void> {
    const list = new KeyList(this.#algorithm)
    const flush = async () => {
      for (const digests of list.full()) await load(digests)
    }
    await this.#collect(
      source,
      source.live.bind(source),
      value => list.add(value),
      () => (list.hasFull ? this.#ours(flush) : undefined)
    )
    for (const digests of list.all()) await load(digests)
  }

  #keyOf(value: unknown): BlobKey {
    return parseKey(value, this.#algorithm)
  }

  /** Notes a failure to store keys as ours: it must not be blamed on the source. */
  async #ours(step: () => Promise<void>): Promise<void> {
    try {
      await step()
    } catch (error) {
      this.#loadFailure = error
      throw error
    }
  }

  /** Runs one source to its end; whatever goes wrong is the source's failure, unless the sweep itself was cancelled. */
  async #collect(
    source: LivenessSource,
    ask: (signal: AbortSignal) => Keys | Promise<Keys>,
    each: (value: unknown) => void,
    pause?: () => Promise<void> | undefined
  ): Promise<void> {
    const patience = new Patience(source.timeoutMs ?? SOURCE_TIMEOUT_MS)
    const interrupt = new Interrupt(patience.signal, ...this.#signals)
    try {
      interrupt.throwIfFired()
      const signal = AbortSignal.any([patience.signal, ...this.#signals])
      const answered = ask(signal)
      // Read in the very step that opened it: a cursor of the application's database keeps its connection from everybody else.
      const keys = isIterable(answered) ? answered : await interrupt.wait(Promise.resolve(answered))
      await this.#each(keys, { interrupt, patience, each, pause })
    } catch (error) {
      if (this.#signals.some(signal => signal.aborted) || (error !== undefined && error === this.#loadFailure))
        throw error
      throw new SweepStop('ProtectFailed', error, source.name)
    } finally {
      patience.end()
      interrupt.dispose()
    }
  }

  async #each(keys: Keys, { interrupt, patience, each, pause }: Taking): Promise<void> {
    if (typeof keys !== 'object' || keys === null)
      throw new InvalidArgumentError('a liveness source', 'an iterable of keys')
    if (isIterable(keys)) {
      for (const key of keys) each(key)
      return
    }
    if (!(Symbol.asyncIterator in keys)) throw new InvalidArgumentError('a liveness source', 'an iterable of keys')
    const iterator = keys[Symbol.asyncIterator]()
    try {
      for (;;) {
        const step = await interrupt.wait(iterator.next())
        if (step.done === true) return
        patience.renew()
        each(step.value)
        const paused = pause?.()
        if (paused !== undefined) await paused
      }
    } catch (error) {
      // The source may be hanging in the very step it is to be told to leave, so nobody waits for its answer.
      Promise.resolve(iterator.return?.()).catch(ownFailure)
      throw error
    }
  }
}

function isIterable(keys: unknown): keys is Iterable<string> {
  return typeof keys === 'object' && keys !== null && Symbol.iterator in keys
}

/** How the keys of one source are taken. */
interface Taking {
  readonly interrupt: Interrupt
  readonly patience: Patience
  /** Throws for what is no key. */
  readonly each: (value: unknown) => void
  /** Asked after each key of a source that can wait. */
  readonly pause: (() => Promise<void> | undefined) | undefined
}

/** Ends after a silence. */
class Patience {
  readonly #over = new AbortController()
  readonly #timer: NodeJS.Timeout

  constructor(silenceMs: number) {
    this.#timer = setTimeout(() => this.#over.abort(new Error(`no answer within ${silenceMs} ms`)), silenceMs)
  }

  get signal(): AbortSignal {
    return this.#over.signal
  }

  renew(): void {
    this.#timer.refresh()
  }

  end(): void {
    clearTimeout(this.#timer)
  }
}

/** The source failed once more while being told to stop; what made it stop is what is reported. */
function ownFailure(): void {}
