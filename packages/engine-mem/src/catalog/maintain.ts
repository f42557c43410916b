/** What time alone ends: `maintain`. */
import type { Catalog } from '@alkblobs/core/engine'
import { atomic, type Medium, now } from '../medium.js'

export function maintain(medium: Medium): Pick<Catalog, 'maintain'> {
  return {
    maintain: (lease, call) =>
      atomic(call, () => {
        medium.checkLease(lease)
        let stagesTrashed = 0
        for (const [id, expiresAt] of medium.stages) {
          if (expiresAt > now()) continue
          medium.stages.delete(id)
          medium.discard(id)
          stagesTrashed += 1
        }
        let pinsReaped = 0
        for (const [key, owners] of [...medium.pins]) {
          for (const [owner, { expiresAt }] of [...owners]) {
            if (expiresAt > now()) continue
            medium.unpin(key, owner)
            pinsReaped += 1
          }
        }
        // No process but ours can have left a mark: its session ends its own.
        return { pinsReaped, stagesTrashed }
      })
  }
}
