/**
 * Puts inside a transaction of the application's: entry and the application's rows are committed together, or neither is.
 *
 * Bytes above the threshold are written before, under a stage of ours that is renewed until the entry is published, and no longer: from
 * then on the transaction decides. What it publishes has no pin, because nothing of it is there before the commit, and after it the
 * application's own row says that the blob is live. If it rolls back, the stage expires by itself.
 *
 * Nothing is healed here: whether damage is repaired must not depend on somebody else's commit.
 */
import type { CheckedJoin } from './checked-server.js'
import type { BlobContent } from './content.js'
import { CorruptBlobError } from './errors.js'
import type { BlobKey } from './key.js'
import type { Pool } from './pool.js'
import { type Content, type Published, type Publisher, stageLost } from './publish.js'
import type { PutOptions } from './put-options.js'

/** What a put in a transaction answers. It means something only once the application has committed. */
export interface JoinedReceipt {
  readonly key: BlobKey
  /** Length of the content in bytes. */
  readonly length: number
  /** Whether the transaction makes the entry; else it was there, and stays at least until the transaction ends. */
  readonly created: boolean
}

/** Publishes into the application's transaction. */
export class JoinedPublisher implements Pick<Publisher, 'publish'> {
  readonly #join: CheckedJoin
  readonly #pool: Pool
  readonly #publisher: Publisher

  constructor(join: CheckedJoin, pool: Pool, publisher: Publisher) {
    this.#join = join
    this.#pool = pool
    this.#publisher = publisher
  }

  async publish(content: Content): Promise<Published | undefined> {
    const { key, length, bytes } = content
    const outcome = await this.#join.publish({ key, length, bytes, trashDelayMs: this.#pool.trashDelayMs })
    if (outcome.outcome === 'stage-lost') throw stageLost(key)
    if (!('entry' in outcome)) return undefined
    const { entry } = outcome
    if (outcome.outcome === 'existed' && (await this.#publisher.brokenPlace(entry, content)) !== undefined) {
      throw new CorruptBlobError(key, 'its bytes are not all there, and a put inside a transaction repairs nothing')
    }
    return { key, length, outcome: outcome.outcome, entry, pin: undefined }
  }
}

/** A store inside one transaction of the application's. Of no use after its end. */
export class JoinedStore {
  readonly #put: (content: BlobContent, options: PutOptions) => Promise<Published>

  /** @internal */
  constructor(put: (content: BlobContent, options: PutOptions) => Promise<Published>) {
    this.#put = put
  }

  /**
   * Stores content, so that it is there once the transaction has committed, and not if it rolls back. Await it before the transaction
   * goes on to its end.
   * @throws what `put` throws; EngineError of kind `conflict`, with nothing done, if the transaction has ended; CorruptBlobError if the
   * blob is there and damaged: put it outside of the transaction first, which repairs it.
   */
  async put(content: BlobContent, options?: Omit<PutOptions, 'pin'>): Promise<JoinedReceipt> {
    const { key, length, outcome } = await this.#put(content, { ...options, pin: false })
    return { key, length, created: outcome !== 'existed' }
  }
}
