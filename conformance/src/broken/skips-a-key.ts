/** Fault: the first key of every further page is skipped, as by a cursor that is one too far. */
import type { BlobKey } from '@alkblobs/core/engine'
import { tapped } from '../tap.js'
import type { PlantedFault } from './fault.js'

/** Pages are full only in pools of more than a thousand entries. */
export const skipsAKey: PlantedFault = {
  name: 'skips a key',
  statement: 'a listing that goes on after a full page leaves out one key at the edge (ENG-LIST-2, ENG-CANDIDATES-1)',
  needs: ['inline', 'mem-only'],
  caughtBy: ['list_correctness_is_observable_through_sweep_outcomes'],
  plant: () => definition =>
    tapped(definition, {
      catalog: inner => ({
        async candidates(lease, after, limit, call) {
          const page = await inner.candidates(lease, after, limit, call)
          if (page.next === undefined) return page
          // The cursor of memory is the last key it looked at.
          const [skipped] = await inner.list(page.next as BlobKey, 1, call)
          return skipped === undefined ? page : { ...page, next: skipped.key }
        },
        async list(after, limit, call) {
          const page = await inner.list(after, limit + 1, call)
          return page.length <= limit ? page : [...page.slice(0, limit - 1), ...page.slice(limit)]
        }
      })
    })
}
