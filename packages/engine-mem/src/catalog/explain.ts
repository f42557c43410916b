/** Everything the catalog knows of one key: `explain`. */
import type { Catalog } from '@alkblobs/core/engine'
import { atomic, type Medium, now } from '../medium.js'

export function explain(medium: Medium): Pick<Catalog, 'explain'> {
  return {
    explain: (key, call) =>
      atomic(call, () => {
        const at = now()
        const pins = [...(medium.pins.get(key) ?? [])].map(([owner, { expiresAt }]) => ({
          owner,
          expiresInMs: expiresAt - at
        }))
        const row = medium.window.get(key)
        return {
          entry: medium.entries.get(key)?.entry,
          pins: pins.filter(({ expiresInMs }) => expiresInMs > 0),
          window: row && {
            stagedAgoMs: at - row.stagedAt,
            dueInMs: medium.dueInMs(row),
            cancelled: row.cancelled
          }
        }
      })
  }
}
