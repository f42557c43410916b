/** Fault: what is answered at once is remembered, and answered again from the same memory. */
import { tapped } from '../tap.js'
import type { PlantedFault } from './fault.js'

/** A cache that forgets whose the bytes are. */
export const givesItsOwnMemory: PlantedFault = {
  name: 'gives its own memory',
  statement: 'readNow answers a range that it answered before in the memory which its caller has by now (BODY-READ-4)',
  needs: ['dual-tier', 'root', 'inline'],
  caughtBy: ['bytes_handed_out_are_the_callers_own'],
  plant: () => definition =>
    tapped(definition, () => {
      const answered = new Map<string, Uint8Array>()
      return {
        bodies: inner => ({
          readNow(locator, range) {
            const name = `${locator} ${range.start} ${range.end}`
            const bytes = answered.get(name) ?? inner.readNow?.(locator, range)
            if (bytes !== undefined) answered.set(name, bytes)
            return bytes
          }
        })
      }
    })
}
