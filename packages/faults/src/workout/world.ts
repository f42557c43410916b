/** A pool at work, and what must be true of it whatever went wrong: the side of a fault test that knows nothing of faults. */
import { randomBytes } from 'node:crypto'
import type { Store } from '@alkblobs/core'
import type { BlobKey, EngineDefinition } from '@alkblobs/core/engine'
import type { Together } from '../postgres/application.js'

/** What the author of an engine brings. */
export interface Subject {
  /** Opens a store over the same media each time, with both engines behind `wrap`. Threshold, delays and timeouts are the subject's. */
  open(wrap: (definition: EngineDefinition) => EngineDefinition): Promise<Store>
  /** Contents of at most this many bytes lie in the catalog, longer ones in the body store. */
  readonly threshold: number
  /** Whether there is a body store. */
  readonly hasBodies: boolean
  /**
   * Lets the time of every pin, stage and retry run out, as if a day had passed; on memory, which forgets nothing by time, nothing.
   * The oracles need it, since what a fault left behind may be owed its time to live.
   */
  expire(): Promise<void>
  /** What lies on the medium beside whole entries, counted without the store: stage files, rows, objects. All must be 0 in the end. */
  residue(): Promise<Readonly<Record<string, number>>>
  /** Makes a sealed body that no row knows, as a writer that died would have. Returns nothing; the next maintenance must find it. */
  orphan?(): Promise<void>
  /** Texts that no error may contain: passwords, connection strings. */
  readonly secrets?: readonly string[]
  /** Registers an empty table of that name, made if it is not there, as a judge of liveness, where the catalog judges tables. */
  protectTable?(store: Store, table: string): Promise<{ remove(): void }>
  /**
   * Runs work in a transaction of an application beside the store, where the store takes part in such transactions (`together` of this kit).
   * Afterwards it looks past the store, and throws an error of no library if a row is there without its entry, or an entry without its row.
   */
  together?<T>(work: Together<T>): Promise<T>
}

/** A blob that was acknowledged, with what it is. */
export interface Held {
  readonly key: BlobKey
  readonly bytes: Buffer
}

const REFERENCES_MAX = 10

export class World {
  readonly subject: Subject
  readonly wrap: (definition: EngineDefinition) => EngineDefinition
  /** What was acknowledged and is still referenced. */
  readonly live = new Map<BlobKey, Buffer>()
  #store: Store | undefined
  /** What no error may contain: the secrets of the subject, and every content. */
  readonly secrets: string[]
  /** Told of every acknowledgement, before anything else happens. */
  onKeep: ((key: BlobKey, bytes: Buffer) => void) | undefined
  readonly #own: number
  #pair: { readonly small: Held; readonly large: Held } | undefined
  #count = 0

  constructor(subject: Subject, wrap: (definition: EngineDefinition) => EngineDefinition) {
    this.subject = subject
    this.wrap = wrap
    this.secrets = [...(subject.secrets ?? [])]
    this.#own = this.secrets.length
  }

  /** The store. @throws if it is not open: a step must have prepared it. */
  get store(): Store {
    if (this.#store === undefined) throw new Error('the store of the world is not open')
    return this.#store
  }

  get isOpen(): boolean {
    return this.#store !== undefined
  }

  /** Opens the store, if it is not open, with its one liveness source. */
  async open(): Promise<void> {
    if (this.#store !== undefined) return
    const store = await this.subject.open(this.wrap)
    try {
      store.protect({ name: 'references', live: () => [...this.live.keys()] })
      await this.subject.protectTable?.(store, 'used')
    } catch (error) {
      await store.close()
      throw error
    }
    this.#store = store
  }

  async close(): Promise<void> {
    const store = this.#store
    this.#store = undefined
    await store?.close()
  }

  /** Two entries that are always there: a small one, and a large one where there is a body store. */
  async pair(): Promise<{ readonly small: Held; readonly large: Held }> {
    this.#pair ??= { small: await this.#put(this.small), large: await this.#put(this.large) }
    return this.#pair
  }

  /** Gives up all references but the youngest, so that what walks through the pool takes as long for the thousandth fault as for the first. */
  forgetOld(): void {
    const kept = new Set([
      this.#pair?.small.key,
      this.#pair?.large.key,
      ...[...this.live.keys()].slice(-REFERENCES_MAX)
    ])
    for (const key of [...this.live.keys()]) if (!kept.has(key)) this.live.delete(key)
    this.secrets.splice(this.#own, Math.max(0, this.secrets.length - this.#own - 2 * REFERENCES_MAX))
  }

  async #put(bytes: Buffer): Promise<Held> {
    await using receipt = await this.store.put(bytes)
    this.keep(receipt.key, bytes)
    return { key: receipt.key, bytes }
  }

  /** Content that nobody has put before. */
  fresh(length: number): Buffer {
    this.#count += 1
    const mark = randomBytes(8).toString('hex')
    // As text, as bytes in an inspected buffer, and as the hexadecimal digits that drivers send.
    this.secrets.push(mark, Buffer.from(mark).toString('hex').slice(0, 24))
    return Buffer.alloc(length, `${this.#count} ${mark} `)
  }

  get small(): Buffer {
    return this.fresh(Math.max(16, Math.floor(this.subject.threshold / 2)))
  }

  /** Long enough for the body store, where there is one. */
  get large(): Buffer {
    return this.fresh(this.subject.hasBodies ? 3 * this.subject.threshold + 1 : this.subject.threshold)
  }

  /** Remembers that the application refers to it. To be said once the put was acknowledged, and before its pin goes. */
  keep(key: BlobKey, bytes: Buffer): void {
    this.live.set(key, bytes)
    this.onKeep?.(key, bytes)
  }
}
