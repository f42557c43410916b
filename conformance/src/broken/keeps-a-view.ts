/** Fault: an inline body is kept as the memory it came in. */
import type { BlobKey } from '@alkblobs/core/engine'
import { tapped } from '../tap.js'
import type { PlantedFault } from './fault.js'

/** Shorter bodies come in memory that core uses again at once, so that nearly every row would notice. */
const LENGTH_MIN = 128 * 1024

/** What was published long ago reads as whatever that memory holds by now. */
export const keepsAView: PlantedFault = {
  name: 'keeps a view',
  statement: 'a long inline body is kept as the memory that it was published from, and not as a copy (ENG-PUBLISH-8)',
  needs: ['inline', 'mem-only'],
  caughtBy: ['a_body_is_the_engines_own_once_its_publication_was_answered'],
  plant: () => definition =>
    tapped(definition, () => {
      const views = new Map<BlobKey, Uint8Array>()
      return {
        catalog: inner => ({
          async publish(items, call) {
            const outcomes = await inner.publish(items, call)
            for (const [i, { key, bytes }] of items.entries()) {
              if (bytes.kind !== 'inline' || bytes.body.length <= LENGTH_MIN) continue
              if (outcomes[i]?.outcome === 'created') views.set(key, bytes.body)
            }
            return outcomes
          },
          async read(key, call) {
            const found = await inner.read(key, call)
            const view = views.get(key)
            return found === undefined || view === undefined ? found : { ...found, body: new Uint8Array(view) }
          }
        })
      }
    })
}
