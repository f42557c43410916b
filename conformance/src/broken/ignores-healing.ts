/** Fault: a broken entry is taken for one that is there. */
import { tapped } from '../tap.js'
import type { PlantedFault } from './fault.js'

/** Every publication that would repair an entry answers `existed`. */
export const ignoresHealing: PlantedFault = {
  name: 'ignores healing',
  statement:
    'publish answers `existed` though the entry still lies at the place that core found broken (ENG-PUBLISH-5)',
  needs: ['dual-tier', 'inline', 'corrupt', 'corrupt-inline'],
  caughtBy: [
    'a_put_heals_a_broken_entry_from_bytes_and_from_a_stream',
    'a_put_heals_a_broken_inline_entry',
    'a_put_that_is_asked_to_verify_heals_what_only_reading_shows',
    'a_damaged_entry_hides_no_other_from_verify',
    'repair_removes_dangling_records_but_never_pinned_or_live_ones'
  ],
  plant: () => definition =>
    tapped(definition, {
      catalog: inner => ({
        publish: (items, call) =>
          inner.publish(
            items.map(({ healing: _, ...item }) => item),
            call
          )
      })
    })
}
