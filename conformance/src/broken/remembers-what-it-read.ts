/** Fault: reads that come together are answered from a state of the pool that is over. */
import type { BlobKey, FoundEntry } from '@alkblobs/core/engine'
import { tapped } from '../tap.js'
import type { PlantedFault } from './fault.js'

/** A snapshot that outlives the reads that it was taken for. */
export const remembersWhatItRead: PlantedFault = {
  name: 'remembers what it read',
  statement: 'a readNow in readTogether answers what the catalog held at an earlier read of the key (ENG-READ-3)',
  needs: ['durable', 'kv-only'],
  caughtBy: ['gets_asked_for_together_answer_what_there_is_by_then'],
  plant: () => definition =>
    tapped(definition, () => {
      const read = new Map<BlobKey, FoundEntry>()
      let isTogether = false
      return {
        catalog: inner => ({
          readNow(key) {
            const found = (isTogether ? read.get(key) : undefined) ?? inner.readNow?.(key)
            if (found === undefined) return undefined
            if (isTogether) read.set(key, { ...found, ...(found.body && { body: new Uint8Array(found.body) }) })
            return found
          },
          readTogether(reads) {
            isTogether = true
            try {
              inner.readTogether?.(reads)
            } finally {
              isTogether = false
            }
          }
        })
      }
    })
}
