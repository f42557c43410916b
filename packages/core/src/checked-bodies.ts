/** The only caller of body stores: every call with its deadline, every failure in its one shape. */
import { types } from 'node:util'
import { identityOf } from './checked-server.js'
import type {
  BodyStore,
  BodyWriter,
  Claim,
  DropResult,
  Locator,
  PoolId,
  ScanPage,
  ServerIdentity,
  StageId
} from './engine.js'
import type { CallOptions, EngineCalls } from './engine-calls.js'
import type { BlobKey } from './key.js'
import type { Range } from './range.js'

const READ = { readOnly: true } as const

export class CheckedBodies {
  readonly #bodies: BodyStore
  readonly #calls: EngineCalls

  constructor(bodies: BodyStore, calls: EngineCalls) {
    this.#bodies = bodies
    this.#calls = calls
  }

  claimed(): Promise<Claim | undefined> {
    return this.#calls.run('claimed', READ, call => this.#bodies.claimed(call))
  }

  claim(claim: Claim): Promise<Claim | 'held'> {
    return this.#calls.run('claim', {}, call => this.#bodies.claim(claim, call))
  }

  get hasServer(): boolean {
    return this.#bodies.server !== undefined
  }

  identity(): Promise<ServerIdentity> {
    return identityOf(this.#calls, this.#bodies.server)
  }

  /** `undefined` where the medium cannot be copied. */
  async reclaim(expected: PoolId, next: Claim): Promise<boolean | undefined> {
    return this.#calls.run('reclaim', {}, async call => this.#bodies.reclaim?.(expected, next, call))
  }

  async create(stage: StageId, length: number | undefined): Promise<CheckedWriter> {
    const hint = length === undefined ? {} : { length }
    const writer = await this.#calls.run('create', {}, call => this.#bodies.create(stage, hint, call), {
      abandon: late => late.discard().catch(ignoreLateDiscard)
    })
    return new CheckedWriter(writer, this.#calls)
  }

  /** One pass over a range; opens nothing before the first `next`. */
  read(locator: Locator, range: Range, key: BlobKey): CheckedReader {
    return new CheckedReader(
      () => {
        // A body is read as fast as its consumer wants, so the deadline is that of each step, not of the whole.
        const call = { deadlineMs: Number.POSITIVE_INFINITY }
        return this.#bodies.read(locator, range, call)[Symbol.asyncIterator]()
      },
      this.#calls,
      key
    )
  }

  /** A short range that the engine has at once; `undefined` where it has to be asked by `read`. */
  readNow(locator: Locator, range: Range): Uint8Array<ArrayBuffer> | undefined {
    const bytes = this.#calls.readNow(this.#bodies, locator, range)
    if (bytes === undefined) return undefined
    if (bytes.length === range.end - range.start && isSole(bytes)) return bytes
    throw this.#calls.broken('read', 'BODY-READ-4')
  }

  async length(locator: Locator, key: BlobKey): Promise<number | undefined> {
    return this.#calls.run('length', { readOnly: true, key }, call => this.#bodies.length(locator, call))
  }

  async drop(what: readonly (Locator | StageId)[]): Promise<readonly DropResult[]> {
    const results = await this.#calls.run('drop', {}, call => this.#bodies.drop(what, call))
    if (results.length !== what.length) throw this.#calls.broken('drop', 'ENG-3')
    return results
  }

  scan(after: string | undefined, limit: number): Promise<ScanPage> {
    return this.#calls.run('scan', READ, call => this.#bodies.scan(after, limit, call))
  }
}

export class CheckedWriter {
  readonly #writer: BodyWriter
  readonly #calls: EngineCalls
  /** The last call into the writer, settled or not. */
  #last: Promise<unknown> = Promise.resolve()

  constructor(writer: BodyWriter, calls: EngineCalls) {
    this.#writer = writer
    this.#calls = calls
  }

  write(chunk: Uint8Array): Promise<void> {
    return this.#calls.run('write', {}, () => this.#next(() => this.#writer.write(chunk)))
  }

  async seal(key: BlobKey): Promise<Locator> {
    const seal = () => this.#next(() => this.#writer.seal(key))
    const discard = () => this.#next(() => this.#writer.discard()).catch(ignoreLateDiscard)
    const locator = await this.#calls.run('seal', { key }, seal, { abandon: discard })
    if (typeof locator !== 'string' || locator.length === 0 || locator.length > 512)
      throw this.#calls.broken('seal', 'BODY-SEAL-1')
    return locator
  }

  discard(): Promise<void> {
    return this.#calls.run('discard', {}, () => this.#next(() => this.#writer.discard()))
  }

  /** One method at a time: a call that missed its deadline is still waited for by the one after it. */
  #next<T>(method: () => Promise<T>): Promise<T> {
    const next = this.#last.then(method)
    this.#last = next.catch(reportedToItsCaller)
    return next
  }
}

export class CheckedReader {
  readonly #open: () => AsyncIterator<Uint8Array>
  readonly #calls: EngineCalls
  /** Made once: an object of this shape for each window would be a shape made anew after each collection of garbage, and the cause of more. */
  readonly #options: CallOptions
  #iterator: AsyncIterator<Uint8Array> | undefined

  constructor(open: () => AsyncIterator<Uint8Array>, calls: EngineCalls, key: BlobKey) {
    this.#open = open
    this.#calls = calls
    this.#options = { readOnly: true, key }
  }

  /** The next chunk, `undefined` at the end. */
  async next(): Promise<Uint8Array | undefined> {
    this.#iterator ??= this.#open()
    const iterator = this.#iterator
    const step = await this.#calls.run('read', this.#options, () => iterator.next())
    if (step.done === true) {
      this.#iterator = undefined
      return undefined
    }
    if (!types.isUint8Array(step.value)) throw this.#calls.broken('read', 'BODY-READ-1: a chunk that is not bytes')
    if (step.value.length === 0) throw this.#calls.broken('read', 'BODY-READ-1: an empty chunk')
    return step.value
  }

  /** Frees what is open; idempotent. `undefined` where there is nothing to wait for: an iterator without `return` holds nothing. */
  close(): Promise<void> | undefined {
    const iterator = this.#iterator
    this.#iterator = undefined
    if (iterator?.return === undefined) return undefined
    return this.#calls.run('read', READ, async () => void (await iterator.return?.()))
  }
}

/** Whether nothing else lies in the buffer behind these bytes. */
export function isSole(bytes: Uint8Array): bytes is Uint8Array<ArrayBuffer> {
  return bytes.byteLength === bytes.buffer.byteLength && bytes.buffer instanceof ArrayBuffer
}

function reportedToItsCaller(): void {}

/** The put has failed before this came; its stage is trash or expires, and takes what the discard could not. */
function ignoreLateDiscard(): void {}
