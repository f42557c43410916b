/** Bytes that no entry uses any more: `trash`, `known`, `discard`, `dropped`. */
import type { Catalog, Found, Trashed } from '@alkblobs/core/engine'
import { atomic, type Medium, now } from '../medium.js'

export function trash(medium: Medium): Pick<Catalog, 'trash' | 'known' | 'discard' | 'dropped'> {
  return {
    trash: (after, limit, call) =>
      atomic(call, () => {
        const page: Trashed[] = []
        for (const [what, { key, length, attempts, droppableAt }] of medium.trash.after(after)) {
          if (page.length === limit) break
          if (droppableAt <= now()) page.push({ what, key, length, attempts })
        }
        return page
      }),

    known: (found, call) => atomic(call, () => found.map(body => isKnown(medium, body))),

    discard: (found, call) =>
      atomic(call, () => {
        for (const body of found) {
          if (!isKnown(medium, body)) medium.discard(body.sealed?.locator ?? body.stage, body.sealed)
        }
      }),

    dropped: (records, call) =>
      atomic(call, () => {
        for (const { what, retryAfterMs } of records) {
          const row = medium.trash.get(what)
          if (retryAfterMs === undefined) medium.trash.delete(what)
          else if (row !== undefined) {
            medium.trash.set(what, { ...row, attempts: row.attempts + 1, droppableAt: now() + retryAfterMs })
          }
        }
      })
  }
}

function isKnown(medium: Medium, { stage, sealed }: Found): boolean {
  if (medium.stages.has(stage) || medium.trash.has(stage)) return true
  if (sealed === undefined) return false
  const place = medium.entries.get(sealed.key)?.entry.place
  return (place?.tier === 'large' && place.locator === sealed.locator) || medium.trash.has(sealed.locator)
}
