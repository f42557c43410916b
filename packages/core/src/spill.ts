/**
 * A large body on its way: stage, create, write, seal. Each step leaves something that expires by itself if the process
 * dies before the next one, and `discard` takes back whatever was made.
 *
 * Bytes are copied into a window of our own, and that window is what is hashed and what is written: whatever the caller
 * does to its buffers, the key is that of the stored bytes. Two windows alternate, so that one is filled while the other
 * is being written.
 */
import { randomBytes } from 'node:crypto'
import type { CheckedWriter } from './checked-bodies.js'
import { partOf } from './content.js'
import type { Hasher } from './derive.js'
import { dropStages } from './drop.js'
import type { Found, Locator, StageId } from './engine.js'
import type { BlobKey } from './key.js'
import { WINDOW_LENGTH } from './limits.js'
import type { Pins } from './pins.js'
import type { Pool } from './pool.js'
import { stageLost } from './publish.js'

interface SpillParts {
  readonly pool: Pool
  readonly pins: Pins
  readonly stageTtlMs: number
  readonly hasher: Hasher
  /** Length of the body in bytes where it is known. */
  readonly length: number | undefined
}

export class Spill {
  readonly stage = randomBytes(16).toString('hex') as StageId
  readonly #parts: SpillParts
  /** Ends the renewal of the stage; nothing to end before the stage is there. */
  #letGo: () => void = nothing
  #stageLost = false
  #writer: CheckedWriter | undefined
  #window: Buffer
  #spare: Buffer | undefined
  #filled = 0
  #length = 0
  #writing: Promise<void> | undefined
  #sealed: Found['sealed']

  private constructor(parts: SpillParts) {
    this.#parts = parts
    this.#window = this.#newWindow()
  }

  static async open(parts: SpillParts): Promise<Spill> {
    const spill = new Spill(parts)
    try {
      await spill.#open()
    } catch (error) {
      await spill.discard()
      throw error
    }
    return spill
  }

  /**
   * Takes the chunk; it is the caller's again when this resolves. `length` is what it had when the caller gave it: memory that is
   * taken away while we wait must not pass for a shorter chunk.
   */
  async write(chunk: Uint8Array, length: number): Promise<void> {
    for (let offset = 0; offset < length; ) {
      const room = this.#window.length - this.#filled
      const part = partOf(chunk, offset, Math.min(offset + room, length))
      this.#window.set(part, this.#filled)
      this.#filled += part.length
      offset += part.length
      if (this.#filled === this.#window.length) await this.#send()
    }
  }

  /** The key of everything written. No more may be written; the body is not sealed yet. */
  async finish(): Promise<BlobKey> {
    if (this.#filled > 0) await this.#send()
    await this.#writing
    return this.#parts.hasher.key()
  }

  /** Makes the body durable under its locator. */
  async seal(key: BlobKey): Promise<Locator> {
    await this.#assertStaged()
    const locator = await (this.#writer as CheckedWriter).seal(key).catch(async error => {
      // A stage that went meanwhile took the body with it: that is the reason, not the medium's surprise.
      await this.#assertStaged()
      throw error
    })
    this.#sealed = { locator, key, length: this.#length, whole: true }
    return locator
  }

  /** The publication took the stage over; nothing is left to take back. */
  published(): void {
    this.#letGo()
  }

  /**
   * Takes back what was made. Best effort, since its caller has a failure to report or a success to return: whatever does
   * not succeed here is reclaimed when the stage has expired.
   */
  async discard(): Promise<void> {
    this.#letGo()
    await this.#writing?.catch(reclaimedLater)
    // A sealed body is left to its stage: if a publication has gone through unseen, the stage is gone and the body in use.
    if (this.#sealed === undefined) await this.#writer?.discard().catch(reclaimedLater)
    await this.#unstage().catch(reclaimedLater)
  }

  async #open(): Promise<void> {
    const { pool, pins, stageTtlMs, length } = this.#parts
    await pool.catalog.stage([{ id: this.stage, ttlMs: stageTtlMs }])
    this.#letGo = pins.holdStage(this.stage, () => {
      this.#stageLost = true
    })
    this.#writer = await pool.bodies.create(this.stage, length)
    // A body made after its stage has come and gone would be known to nobody.
    await this.#assertStaged()
  }

  /** Hashes the filled window and starts writing it, once the one before it is written. */
  async #send(): Promise<void> {
    await this.#writing
    const full = this.#window
    const bytes = full.subarray(0, this.#filled)
    this.#parts.hasher.update(bytes)
    this.#length += bytes.length
    const writing = (this.#writer as CheckedWriter).write(bytes)
    // Awaited by the next step; until then a failure must not count as unhandled.
    writing.catch(reclaimedLater)
    this.#writing = writing
    this.#window = this.#spare ?? this.#newWindow()
    this.#spare = full
    this.#filled = 0
  }

  async #assertStaged(): Promise<void> {
    const [there] = await this.#parts.pool.catalog.staged([this.stage])
    if (there !== true || this.#stageLost) throw stageLost()
  }

  async #unstage(): Promise<void> {
    const { pool } = this.#parts
    const [ended] = await pool.catalog.unstage([this.stage])
    if (ended === true) await dropStages(pool, [this.stage])
    else if (this.#sealed !== undefined) await this.#takeBackOrphan(this.#sealed)
  }

  /** A body whose stage is gone and that nothing knows can never be published, so it is ours to remove; else it is in use. */
  async #takeBackOrphan(sealed: NonNullable<Found['sealed']>): Promise<void> {
    const [known] = await this.#parts.pool.catalog.known([{ stage: this.stage, sealed }])
    if (known === false) await this.#writer?.discard()
  }

  #newWindow(): Buffer {
    return Buffer.allocUnsafeSlow(Math.min(WINDOW_LENGTH, Math.max(1, this.#parts.length ?? WINDOW_LENGTH)))
  }
}

function nothing(): void {}

function reclaimedLater(): void {}
