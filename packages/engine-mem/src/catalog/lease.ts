/** The right to sweep, and the epoch it opens: `lease`. */
import type { Catalog, Lease } from '@alkblobs/core/engine'
import { atomic, type Medium } from '../medium.js'
import type { Session } from '../session.js'

export function lease(medium: Medium, session: Session): Pick<Catalog, 'lease'> {
  return {
    lease: call =>
      atomic(call, () => {
        if (medium.held !== undefined) return undefined
        const lost = new AbortController()
        const free = () => {
          if (medium.held?.lease !== lease) return
          medium.held = undefined
          session.loseLease = undefined
        }
        const lease: Lease = {
          lost: lost.signal,
          async release() {
            free()
          }
        }
        session.loseLease = () => {
          free()
          lost.abort()
        }
        // Keys pinned now; `protect` adds what is put or pinned until the lease ends (ENG-LEASE-4).
        medium.held = { lease, epoch: medium.form === 'inline' ? new Set(medium.pins.keys()) : undefined }
        return lease
      })
  }
}
