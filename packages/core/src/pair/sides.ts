/** Which of the two catalogs a cursor, a mark or a lease belongs to. */
import type { BlobKey, Call, Catalog, Lease } from '../engine.js'
import { EngineFault } from '../engine-fault.js'
import type { Pair } from './index.js'

export type Side = 'near' | 'far'

/** A name of one catalog, as the pair answers it. */
export function tag<Name extends string>(side: Side, name: Name): Name {
  return `${side}:${name}` as Name
}

/** The catalog that a tagged name is of, and its name there. A walk begins with the near one. */
export function sideOf<Name extends string>(tagged: Name | undefined): { side: Side; name: Name | undefined } {
  if (tagged === undefined) return { side: 'near', name: undefined }
  const colon = tagged.indexOf(':')
  const name = tagged.slice(colon + 1) as Name
  return { side: tagged.slice(0, colon) as Side, name: name === '' ? undefined : name }
}

/** Where a walk goes on: through the near catalog, then through the far one. */
export function nextOf(side: Side, next: string | undefined): string | undefined {
  if (next !== undefined) return tag(side, next)
  return side === 'near' ? tag('far', '') : undefined
}

/** The two leases behind one; the far one is the pool's, the near one keeps stores of this process apart. */
interface PairLease extends Record<Side, Lease> {
  /** Candidates answered last, by the catalog whose rows they are: a key alone does not say it, once its entry is gone. */
  due: { readonly side: Side; readonly keys: ReadonlySet<BlobKey> }
}

export class PairLeases {
  readonly #pair: Pair
  readonly #held = new WeakMap<Lease, PairLease>()

  constructor(pair: Pair) {
    this.#pair = pair
  }

  readonly lease: Catalog['lease'] = async call => {
    const far = await this.#pair.far.lease(call)
    if (far === undefined) return undefined
    const near = await this.#near(far, call)
    if (near === undefined) return undefined
    // Without `live`: memory could not join a table of keys on the server, so core keeps the set for both.
    const lease: Lease = {
      lost: AbortSignal.any([near.lost, far.lost]),
      async release() {
        await near.release()
        await far.release()
      }
    }
    this.#held.set(lease, { near, far, due: { side: 'near', keys: new Set() } })
    return lease
  }

  /** @throws EngineFault `conflict` for a lease that this pair did not give. */
  held(lease: Lease): PairLease {
    const held = this.#held.get(lease)
    if (held === undefined) throw new EngineFault('conflict', 'the lease is not held (any more)')
    return held
  }

  async #near(far: Lease, call: Call): Promise<Lease | undefined> {
    let near: Lease | undefined
    try {
      near = await this.#pair.near.lease(call)
      return near
    } finally {
      if (near === undefined) await far.release()
    }
  }
}
