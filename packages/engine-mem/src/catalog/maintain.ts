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
        // Pins have no expiry here, and no process but ours can have left a mark: its session ends its own.
        return { pinsReaped: 0, stagesTrashed }
      })
  }
}
