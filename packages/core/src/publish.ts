/**
 * Publishing: one catalog transaction in which the entry appears or is found, is pinned, and any sweep that was about to
 * take it is told off. An entry that is found is looked at before it is trusted, and healed if it is evidently broken.
 */

import type { Derivation } from './derive.js'
import { dropTrashUnderLease } from './drop.js'
import type { Entry, Locator, Place, Publication, PublishedBytes, PublishOutcome } from './engine.js'
import { CorruptBlobError, EngineError, PutError } from './errors.js'
import type { BlobKey } from './key.js'
import type { PinState } from './pin.js'
import type { Pins, Reservation } from './pins.js'
import type { Pool } from './pool.js'
import { deriveAgain } from './reading.js'

/** Healing loses against others who heal the same entry; each loss means that one of them succeeded. */
const HEAL_ATTEMPTS = 8

/** A published entry under its key. */
export interface Published {
  readonly key: BlobKey
  readonly length: number
  readonly outcome: 'created' | 'existed' | 'healed'
  readonly entry: Entry
  readonly pin: PinState | undefined
}

/** Content on its way into an entry. */
export interface Content {
  readonly key: BlobKey
  readonly length: number
  readonly bytes: PublishedBytes
  readonly pin: boolean
  /** Whether an entry that is found is read back before it is trusted. */
  readonly verify: boolean
}

interface PublisherParts {
  readonly pool: Pool
  readonly pins: Pins
  readonly derivation: Derivation
}

export class Publisher {
  readonly #pool: Pool
  readonly #pins: Pins
  readonly #derivation: Derivation

  constructor({ pool, pins, derivation }: PublisherParts) {
    this.#pool = pool
    this.#pins = pins
    this.#derivation = derivation
  }

  /**
   * Makes the entry, or finds one whose bytes are there. `undefined`: the publication brought no bytes, and there is no
   * entry, or a broken one that only bytes can heal.
   * @throws PutError (`ERR_BLOB_STAGE_LOST`) when the stage has expired.
   */
  async publish(content: Content): Promise<Published | undefined> {
    let healing: Place | undefined
    for (let attempt = 0; attempt < HEAL_ATTEMPTS; attempt++) {
      const reservation = content.pin ? this.#pins.reserve(content.key) : undefined
      let outcome: PublishOutcome
      try {
        outcome = await this.#pool.catalog.publish(this.#publication(content, healing, reservation))
      } catch (error) {
        if (reservation !== undefined) this.#pins.abandon(reservation)
        throw error
      }
      if (!('entry' in outcome)) return this.#nothing(content, outcome.outcome, reservation)
      const pin = reservation && this.#confirm(reservation, content.length)
      const published = {
        key: content.key,
        length: content.length,
        outcome: outcome.outcome,
        entry: outcome.entry,
        pin: pin instanceof Promise ? await pin : pin
      }
      if (published.outcome === 'healed') await this.#dropReplaced(healing)
      if (published.outcome !== 'existed') return published
      healing = await this.brokenPlace(published.entry, content).catch(error => {
        published.pin?.release()
        throw error
      })
      if (healing === undefined) return published
      published.pin?.release()
      if (content.bytes.kind === 'none') return undefined
    }
    throw new PutError('ERR_BLOB_STAGE_LOST', 'the entry kept breaking while it was being healed; run verify', {
      key: content.key
    })
  }

  /** Pins an entry that exists. */
  async pin(key: BlobKey): Promise<PinState | undefined> {
    const reservation = this.#pins.reserve(key)
    const request = { key, pin: reservation.row, ttlMs: this.#pins.ttlMs }
    const entry = await this.#pool.catalog.pin(request).catch(error => {
      this.#pins.abandon(reservation)
      throw error
    })
    if (entry !== undefined) return this.#confirm(reservation, entry.length)
    this.#pins.abandon(reservation)
    return undefined
  }

  /**
   * Where bodies need not wait, the replaced one goes before the put answers: a catalog in memory that is made anew from its
   * bodies could otherwise take the broken one for the entry.
   */
  async #dropReplaced(place: Place | undefined): Promise<void> {
    if (place?.tier !== 'large' || this.#pool.trashDelayMs > 0) return
    await dropTrashUnderLease(this.#pool).catch(triedAgainLater)
  }

  /** There is no entry, or the bytes that were to make it are gone. */
  #nothing({ key }: Content, outcome: 'absent' | 'stage-lost', reservation: Reservation | undefined): undefined {
    if (reservation !== undefined) this.#pins.abandon(reservation)
    if (outcome === 'stage-lost') throw stageLost(key)
  }

  /** @throws PutError (`ERR_BLOB_PIN_LOST`) for a pin that expired while it was being taken. */
  #confirm(reservation: Reservation, length: number): PinState | Promise<PinState> {
    const pin = this.#pins.confirm(reservation, length)
    const alive = this.#pins.isAlive(reservation)
    return alive === true ? pin : this.#ifAlive(reservation, pin, alive)
  }

  async #ifAlive(reservation: Reservation, pin: PinState, alive: Promise<boolean>): Promise<PinState> {
    const isAlive = await alive.catch(error => {
      pin.release()
      throw error
    })
    if (isAlive) return pin
    pin.release()
    throw new PutError('ERR_BLOB_PIN_LOST', 'the pin expired before it could be handed out; put the content again', {
      key: reservation.key
    })
  }

  #publication(content: Content, healing: Place | undefined, reservation: Reservation | undefined): Publication {
    const { key, length, bytes } = content
    const item: Writable<Publication> = { key, length, bytes, trashDelayMs: this.#pool.trashDelayMs }
    if (reservation !== undefined) item.pin = { row: reservation.row, ttlMs: this.#pins.ttlMs }
    if (healing !== undefined) item.healing = healing
    return item
  }

  /** Where the entry's bytes lie, if they cannot be right: by a look at their length, or by reading them where that is asked. */
  async brokenPlace(entry: Entry, { length, verify }: Content): Promise<Place | undefined> {
    const { place } = entry
    if (entry.length !== length) return place
    const held = place.tier === 'kv' ? place.length : await this.#heldLength(place.locator, entry.key)
    if (held !== length) return place
    return verify && (await this.#isDamaged(entry)) ? place : undefined
  }

  /** Reads the entry to its end; an entry that moves meanwhile is read where it lies then. */
  async #isDamaged({ key }: Entry): Promise<boolean> {
    try {
      await deriveAgain({ pool: this.#pool, derivation: this.#derivation, key })
      return false
    } catch (error) {
      if (error instanceof CorruptBlobError) return true
      throw error
    }
  }

  /** A body store that finds something else in the body's place has no body there. */
  async #heldLength(locator: Locator, key: BlobKey): Promise<number | undefined> {
    try {
      return await this.#pool.bodies.length(locator, key)
    } catch (error) {
      if (error instanceof EngineError && error.kind === 'corrupt') return undefined
      throw error
    }
  }
}

type Writable<T> = { -readonly [K in keyof T]: T[K] }

/** The entry is healed whatever happens here: what could not be dropped stays in trash, for maintenance. */
function triedAgainLater(): void {}

export function stageLost(key?: BlobKey): PutError {
  const message = 'the put was silent for longer than its stage may live, and was given up; put the content again'
  return new PutError('ERR_BLOB_STAGE_LOST', message, { key })
}
