/** Fault: a put in a transaction of the application takes effect by itself. */
import type { Joining } from '@alkblobs/core/engine'
import { tapped } from '../tap.js'
import type { PlantedFault } from './fault.js'

/** Joined publications go to the pool at once, whatever becomes of the transaction. */
export const publishesBeside: PlantedFault = {
  name: 'publishes beside',
  statement: 'publish of a joined transaction makes its entry in a transaction of its own (ENG-JOIN-2)',
  needs: ['joins'],
  caughtBy: [
    'an_entry_found_in_a_transaction_is_kept_until_it_ends_and_nobody_waits_for_it',
    'what_is_put_in_a_transaction_is_there_with_its_commit_and_not_without_it',
    'without_an_open_transaction_a_joined_store_is_refused_and_puts_nothing'
  ],
  plant: () => definition =>
    tapped(definition, {
      catalog: inner => {
        const { joining } = inner
        if (joining === undefined) return {}
        const beside: Joining = {
          async join(transaction, call) {
            await joining.join(transaction, call)
            return {
              async publish(item, beneath) {
                const [outcome] = await inner.publish([item], beneath)
                return outcome ?? { outcome: 'absent' }
              }
            }
          }
        }
        return { joining: beside }
      }
    })
}
