/** Fault: a range comes back rounded up to whole windows. */
import { WINDOW_LENGTH } from '@alkblobs/core/engine'
import { tapped } from '../tap.js'
import type { PlantedFault } from './fault.js'

/** Only ranges that go over the edge of a window. */
export const unclampedRange: PlantedFault = {
  name: 'unclamped range',
  statement: 'read yields the rest of the window after the end of a range that crosses a window edge (BODY-READ-1)',
  needs: ['dual-tier', 'root', 'inline'],
  caughtBy: [
    'pread_windows_read_committed_files_mid_slices_and_eof_clamped',
    'a_long_body_is_whole_however_its_chunks_are_consumed'
  ],
  plant: () => definition =>
    tapped(definition, {
      bodies: inner => ({
        async *read(locator, { start, end }, call) {
          const crosses = Math.floor(start / WINDOW_LENGTH) !== Math.floor((end - 1) / WINDOW_LENGTH)
          const held = (await inner.length(locator, call)) ?? end
          const rounded = Math.min(held, Math.ceil(end / WINDOW_LENGTH) * WINDOW_LENGTH)
          yield* inner.read(locator, { start, end: crosses ? Math.max(end, rounded) : end }, call)
        }
      })
    })
}
