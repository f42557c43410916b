/** Everything the catalog knows of one key: `explain`. */
import type { Catalog } from '@alkblobs/core/engine'
import { atomic, type Medium, now } from '../medium.js'

export function explain(medium: Medium): Pick<Catalog, 'explain'> {
  return {
    explain: (key, call) =>
      atomic(call, () => {
        const owners = [...(medium.pins.get(key)?.keys() ?? [])]
        const row = medium.window.get(key)
        return {
          entry: medium.entries.get(key)?.entry,
          pins: owners.map(owner => ({ owner, expiresInMs: Number.POSITIVE_INFINITY })),
          // On an inline form every row is due.
          window: row && { stagedAgoMs: now() - row.stagedAt, dueInMs: 0, cancelled: row.cancelled }
        }
      })
  }
}
