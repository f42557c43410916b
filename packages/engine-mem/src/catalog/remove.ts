/** Arbitration, and the removal it allows, in one step: `mark`, `remove`. */
import { randomUUID } from 'node:crypto'
import type { BlobKey, Catalog, DeleteMark, Removal, RemoveOutcome } from '@alkblobs/core/engine'
import { atomic, type Medium, type StoredEntry, samePlace } from '../medium.js'
import type { Session } from '../session.js'

export function remove(medium: Medium, session: Session): Pick<Catalog, 'mark' | 'remove'> {
  return {
    mark: (key, call) =>
      atomic(call, () => {
        if (medium.isPinned(key)) return 'pinned'
        const entry = medium.entries.get(key)?.entry
        if (entry === undefined) return 'absent'
        const mark = randomUUID() as string as DeleteMark
        const marks = medium.marks.get(key) ?? new Map()
        medium.marks.set(key, marks.set(mark, { cancelled: false }))
        session.marks.set(mark, key)
        return { mark, entry }
      }),

    remove: (items, trashDelayMs, lease, call) =>
      atomic(call, () => {
        medium.checkStamp()
        if (items.some(({ kind }) => kind === 'candidate')) medium.checkLease(lease)
        return items.map(item => {
          if (item.kind === 'candidate') return removeCandidate(medium, item, trashDelayMs)
          session.marks.delete(item.mark)
          return removeMarked(medium, item, trashDelayMs)
        })
      })
  }
}

function removeCandidate(medium: Medium, item: Removal & { kind: 'candidate' }, trashDelayMs: number): RemoveOutcome {
  const { key } = item
  const row = medium.window.get(key)
  medium.window.delete(key)
  if (row === undefined || row.cancelled) return { outcome: 'cancelled' }
  const found = medium.entries.get(key)
  if (found === undefined) return { outcome: 'deleted', entry: undefined }
  if (item.live || medium.isPinned(key) || medium.held?.epoch?.has(key)) return { outcome: 'cancelled' }
  return take(medium, key, found, trashDelayMs)
}

/** A direct delete asks the mark, not the epoch: every put and pin since the question cancelled the mark. */
function removeMarked(medium: Medium, item: Removal & { kind: 'marked' }, trashDelayMs: number): RemoveOutcome {
  const { key } = item
  const row = medium.marks.get(key)?.get(item.mark)
  medium.unmark(key, item.mark)
  const found = medium.entries.get(key)
  if (found === undefined) return { outcome: 'absent' }
  if (item.at !== undefined && !samePlace(found.entry.place, item.at)) return { outcome: 'absent' }
  if (row === undefined || row.cancelled || item.live || medium.isPinned(key)) return { outcome: 'cancelled' }
  return take(medium, key, found, trashDelayMs)
}

function take(medium: Medium, key: BlobKey, { entry }: StoredEntry, trashDelayMs: number): RemoveOutcome {
  medium.entries.delete(key)
  // What is left of them has expired (ENG-REMOVE-3).
  medium.pins.delete(key)
  if (entry.place.tier === 'large') medium.discard(entry.place.locator, entry, trashDelayMs)
  return { outcome: 'deleted', entry }
}
