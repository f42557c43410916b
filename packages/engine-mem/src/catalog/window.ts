/** Candidates, looked for and staged: `candidates`, `stageCandidates`, `due`. */
import type { BlobKey, Catalog } from '@alkblobs/core/engine'
import { atomic, type Medium, now } from '../medium.js'

export function window(medium: Medium): Pick<Catalog, 'candidates' | 'stageCandidates' | 'due'> {
  return {
    candidates: (lease, after, limit, call) =>
      atomic(call, () => {
        const epoch = lease && medium.checkLease(lease).epoch
        const page = { scanned: 0, live: 0, alreadyStaged: 0 }
        const keys: BlobKey[] = []
        const cancelled: BlobKey[] = []
        let last: BlobKey | undefined
        for (const [key] of medium.entries.after(after as BlobKey | undefined)) {
          // One entry beyond the page tells whether there is another page.
          if (page.scanned === limit) return { ...page, cancelled, keys, next: last }
          page.scanned += 1
          last = key
          const row = medium.window.get(key)
          if (medium.isPinned(key) || epoch?.has(key)) page.live += 1
          else if (row === undefined) keys.push(key)
          else {
            page.alreadyStaged += 1
            if (row.cancelled) cancelled.push(key)
          }
        }
        return { ...page, cancelled, keys, next: undefined }
      }),

    stageCandidates: (lease, keys, call) =>
      atomic(call, () => {
        medium.checkLease(lease)
        const { windowDelayMs: delayMs } = medium.checkStamp()
        const dead = keys.filter(key => medium.entries.has(key) && !medium.window.has(key) && !medium.isPinned(key))
        for (const key of dead) {
          medium.rows += 1
          medium.window.set(key, { sequence: medium.rows, stagedAt: now(), delayMs, cancelled: false })
        }
        return dead
      }),

    due: (lease, after, limit, call) =>
      atomic(call, () => {
        medium.checkLease(lease)
        const keys: BlobKey[] = []
        let last = after === undefined ? 0 : Number(after)
        for (const [key, row] of medium.window) {
          const { sequence } = row
          if (sequence <= last || medium.dueInMs(row) > 0) continue
          if (keys.length === limit) return { keys, next: String(last) }
          keys.push(key)
          last = sequence
        }
        return { keys, next: undefined }
      })
  }
}
