/** What exists: `find`, `read`, `list`, `usage`. */
import type { Catalog, Entry } from '@alkblobs/core/engine'
import { atomic, type Medium, now } from '../medium.js'

export function entries(medium: Medium): Pick<Catalog, 'find' | 'read' | 'list' | 'usage'> {
  return {
    find: (keys, call) => atomic(call, () => keys.map(key => medium.entries.get(key)?.entry)),

    read: (key, call) =>
      atomic(call, () => {
        const stored = medium.entries.get(key)
        if (stored === undefined) return undefined
        const { entry, body } = stored
        return body === undefined ? { entry } : { entry, body: new Uint8Array(body) }
      }),

    list: (after, limit, call) =>
      atomic(call, () => {
        const page: Entry[] = []
        for (const [, { entry }] of medium.entries.after(after)) {
          if (page.length === limit) break
          page.push(entry)
        }
        return page
      }),

    usage: call =>
      atomic(call, () => {
        const tiers = { kv: { entries: 0, bytes: 0 }, large: { entries: 0, bytes: 0 } }
        for (const { entry } of medium.entries.values()) {
          const tier = tiers[entry.place.tier]
          tier.entries += 1
          tier.bytes += entry.length
        }
        let pins = 0
        for (const owners of medium.pins.values())
          for (const { expiresAt } of owners.values()) if (expiresAt > now()) pins++
        const { window, stages, trash } = medium
        return { ...tiers, pins, window: window.size, stages: stages.size, trash: trash.size }
      })
  }
}
