/** Fault: a read that is left in the middle stays open. */
import { tapped } from '../tap.js'
import type { PlantedFault } from './fault.js'

/** The iterator of the medium is pulled by hand, and nobody tells it that it is over. */
export const leaksAReader: PlantedFault = {
  name: 'leaks a reader',
  statement: 'read does not close what it opened when its consumer leaves the loop (BODY-READ-3)',
  needs: ['dual-tier', 'inline', 'handles'],
  caughtBy: ['a_read_that_is_abandoned_closes_the_medium'],
  plant: () => definition =>
    tapped(definition, {
      bodies: inner => ({
        async *read(locator, range, call) {
          const iterator = inner.read(locator, range, call)[Symbol.asyncIterator]()
          for (let step = await iterator.next(); step.done !== true; step = await iterator.next()) yield step.value
        }
      })
    })
}
