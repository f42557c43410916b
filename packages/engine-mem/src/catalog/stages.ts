/** Intents to write a body: `stage`, `staged`, `unstage`. */
import type { Catalog } from '@alkblobs/core/engine'
import { atomic, type Medium, now } from '../medium.js'

export function stages(medium: Medium): Pick<Catalog, 'stage' | 'staged' | 'unstage'> {
  return {
    stage: (intents, call) =>
      atomic(call, () => {
        for (const { id, ttlMs } of intents) medium.stages.set(id, now() + ttlMs)
      }),

    staged: (ids, call) => atomic(call, () => ids.map(id => (medium.stages.get(id) ?? 0) > now())),

    unstage: (ids, call) =>
      atomic(call, () =>
        ids.map(id => {
          // Only a row that is there moves: the bytes of a stage that was published have an entry by now.
          const wasThere = medium.stages.delete(id)
          if (wasThere) medium.discard(id)
          return wasThere
        })
      )
  }
}
