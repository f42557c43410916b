/** Fault: the stage of a put that lost its race stays where it is. */
import type { StageId } from '@alkblobs/core/engine'
import { override, tapped } from '../tap.js'
import type { PlantedFault } from './fault.js'

/** The fault shows only in bodies longer than this, in bytes, as where a buffer of this size hides it. */
const HIDDEN_LENGTH_MAX = 256 * 1024

/** Only sealed bodies: a put that fails before its end is cleaned up as it should be. */
export const keepsADiscardedStage: PlantedFault = {
  name: 'keeps a discarded stage',
  statement: 'unstage does nothing for a stage whose long body was sealed and not published (ENG-STAGE-3)',
  needs: ['dual-tier', 'inline'],
  caughtBy: ['stage_hygiene_exact_counts_on_disk_over_both_put_paths'],
  plant: () => {
    const sealed = new Set<StageId>()
    return definition =>
      tapped(definition, {
        catalog: inner => ({
          unstage: (stages, call) =>
            inner.unstage(
              stages.filter(stage => !sealed.has(stage)),
              call
            )
        }),
        bodies: inner => ({
          async create(stage, hint, call) {
            const writer = await inner.create(stage, hint, call)
            let length = 0
            return override(writer, {
              async write(chunk) {
                await writer.write(chunk)
                length += chunk.length
              },
              async seal(key) {
                const locator = await writer.seal(key)
                if (length > HIDDEN_LENGTH_MAX) sealed.add(stage)
                return locator
              }
            })
          }
        })
      })
  }
}
