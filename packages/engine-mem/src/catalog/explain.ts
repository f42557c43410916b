/** Everything the catalog knows of one key: `explain`. */
import type { Catalog } from '@alkblobs/core/engine'
import { atomic, type Medium, now } from '../medium.js'

export function explain(medium: Medium): Pick<Catalog, 'explain'> {
  return {
    explain: (key, call) =>
      atomic(call, () => {
        const pins = [...(medium.pins.get(key) ?? [])]
        const row = medium.window.get(key)
        return {
          entry: medium.entries.get(key)?.entry,
          pins: pins.map(([owner, { expiresAt }]) => ({ owner, expiresInMs: expiresAt - now() })),
          window: row && {
            stagedAgoMs: now() - row.stagedAt,
            dueInMs: medium.dueInMs(row),
            cancelled: row.cancelled
          }
        }
      })
  }
}
