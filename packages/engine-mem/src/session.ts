/** What one open engine has in a medium that may outlive it. Ending it is what the death of a process is elsewhere. */
import type { BlobKey, DeleteMark, Owner, Publication } from '@alkblobs/core/engine'
import type { Medium } from './medium.js'

export class Session {
  readonly marks = new Map<DeleteMark, BlobKey>()
  /** Fires `lost` of the lease this session holds, and frees it. */
  loseLease: (() => void) | undefined
  readonly #medium: Medium
  readonly #owners = new Set<Owner>()

  constructor(medium: Medium) {
    this.#medium = medium
  }

  /** Protects a key that was found or made in this very step. */
  protect(key: BlobKey, pin: Publication['pin']): void {
    if (pin !== undefined) this.#owners.add(pin.row.owner)
    this.#medium.protect(key, pin)
  }

  /** ENG-CLOSE-1. A pin without expiry would otherwise outlast its holder for as long as the memory is shared. */
  end(): void {
    this.loseLease?.()
    for (const [mark, key] of this.marks) this.#medium.unmark(key, mark)
    for (const key of [...this.#medium.pins.keys()]) for (const owner of this.#owners) this.#medium.unpin(key, owner)
  }
}
