/** Large bodies of a durable pool: what a folder keeps for engine-local, as maps. A body is half until it is sealed. */
import {
  type BlobKey,
  type BodyStore,
  type BodyWriter,
  type Claim,
  EngineFault,
  type Found,
  type Locator,
  type StageId,
  WINDOW_LENGTH
} from '@alkblobs/core/engine'

export interface SealedBody {
  readonly stage: StageId
  readonly key: BlobKey
  readonly bytes: Uint8Array
}

export class BodyMedium {
  readonly half = new Map<StageId, Uint8Array>()
  readonly sealed = new Map<Locator, SealedBody>()
  claim: Claim | undefined

  copy(): BodyMedium {
    const copy = new BodyMedium()
    for (const [stage, bytes] of this.half) copy.half.set(stage, bytes)
    for (const [locator, body] of this.sealed) copy.sealed.set(locator, body)
    copy.claim = this.claim
    return copy
  }

  /** Removes whatever was made under the name. */
  drop(what: Locator | StageId): void {
    this.half.delete(what as StageId)
    for (const [locator, { stage }] of this.sealed) if (locator === what || stage === what) this.sealed.delete(locator)
    // A half file of a published body's stage does not exist: sealing moved it.
    this.half.delete(stageOf(what))
  }

  dump(): string {
    return JSON.stringify([[...this.half.keys()].sort(), [...this.sealed.keys()].sort(), this.claim !== undefined])
  }
}

/** `<stage>.<digest>.<length>`, like engine-local: the stage is the unique part. */
export function locatorOf(stage: StageId, key: BlobKey, length: number): Locator {
  return `${stage}.${key.slice(key.indexOf(':') + 1)}.${length}` as Locator
}

/** The stage that a body's name or a stage's own name stands for. */
export function stageOf(what: Locator | StageId): StageId {
  return (what.split('.')[0] ?? what) as StageId
}

/** A body store over the medium. Each method is one step, but reads, which are not explored. */
export class Bodies implements BodyStore {
  protected readonly medium: BodyMedium

  constructor(medium: BodyMedium) {
    this.medium = medium
  }

  async claimed(): Promise<Claim | undefined> {
    return this.medium.claim
  }

  /** An exclusive claim is of one process, and all instances here are in one. */
  async claim(claim: Claim): Promise<Claim> {
    this.medium.claim ??= claim
    return this.medium.claim
  }

  async create(stage: StageId): Promise<BodyWriter> {
    const { half, sealed } = this.medium
    if (half.has(stage) || [...sealed.values()].some(body => body.stage === stage)) throw new Error(`${stage} is there`)
    half.set(stage, new Uint8Array(0))
    return {
      write: async chunk => {
        half.set(stage, Buffer.concat([this.#halfOf(stage), chunk]))
      },
      seal: async key => {
        const bytes = this.#halfOf(stage)
        half.delete(stage)
        return this.keep({ stage, key, bytes })
      },
      discard: async () => {
        this.medium.drop(stage)
      }
    }
  }

  async *read(locator: Locator, range: { start: number; end: number }): AsyncGenerator<Uint8Array> {
    const body = this.medium.sealed.get(locator)
    if (body === undefined) throw new EngineFault('gone', `no body ${locator}`)
    const end = Math.min(range.end, body.bytes.length)
    for (let at = range.start; at < end; at += WINDOW_LENGTH) {
      // A copy: the chunk is the consumer's.
      yield new Uint8Array(body.bytes.subarray(at, Math.min(at + WINDOW_LENGTH, end)))
    }
  }

  async length(locator: Locator): Promise<number | undefined> {
    return this.medium.sealed.get(locator)?.bytes.length
  }

  async drop(what: readonly (Locator | StageId)[]): Promise<{ what: Locator | StageId }[]> {
    for (const name of what) this.medium.drop(name)
    return what.map(name => ({ what: name }))
  }

  async scan(): Promise<{ found: Found[]; next: undefined }> {
    const { half, sealed } = this.medium
    const found: Found[] = [...half.keys()].map(stage => ({ stage }))
    for (const [locator, { stage, key, bytes }] of sealed) {
      found.push({ stage, sealed: { locator, key, length: bytes.length, whole: true } })
    }
    return { found, next: undefined }
  }

  protected keep(body: SealedBody): Locator {
    const locator = locatorOf(body.stage, body.key, body.bytes.length)
    this.medium.sealed.set(locator, body)
    return locator
  }

  #halfOf(stage: StageId): Uint8Array {
    const bytes = this.medium.half.get(stage)
    if (bytes === undefined) throw new EngineFault('gone', `the half body of ${stage} was removed`)
    return bytes
  }
}
