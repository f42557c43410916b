/** Fault: a release ends whatever pin row it finds. */
import { tapped } from '../tap.js'
import type { PlantedFault } from './fault.js'

/** A release that was on its way when the same content was put again takes the newer pin with it. */
export const releasesAnyGeneration: PlantedFault = {
  name: 'releases any generation',
  statement: 'release ends the pin row of the key and owner, whatever generation it is of (ENG-RELEASE-1)',
  needs: ['inline', 'mem-only'],
  caughtBy: [
    'a_late_release_after_a_reput_leaves_the_newer_pin_alone',
    // Both take a pin on what was released a moment ago, while that release is still on its way.
    'a_delete_refuses_what_is_pinned_or_live',
    'sweep_counts_are_exact_across_the_full_protection_set'
  ],
  plant: () => definition =>
    tapped(definition, {
      catalog: inner => ({
        release: (pins, call) =>
          inner.release(
            pins.map(({ key, pin }) => ({ key, pin: { ...pin, generation: Number.MAX_SAFE_INTEGER } })),
            call
          )
      })
    })
}
