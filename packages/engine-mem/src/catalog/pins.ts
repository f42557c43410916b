/** Protection of entries that exist: `pin`, `renew`, `release`. */
import type { Catalog } from '@alkblobs/core/engine'
import { atomic, type Medium, now } from '../medium.js'
import type { Session } from '../session.js'

export function pins(medium: Medium, session: Session): Pick<Catalog, 'pin' | 'renew' | 'release'> {
  return {
    pin: (items, call) =>
      atomic(call, () =>
        items.map(({ key, pin }) => {
          const entry = medium.entries.get(key)?.entry
          if (entry !== undefined) session.protect(key, pin)
          return entry
        })
      ),

    renew: (request, call) =>
      atomic(call, () => {
        const pins = request.pins.filter(({ key, pin }) => {
          const generation = medium.pins.get(key)?.get(pin.owner)
          // A pin in memory has no expiry to move: to be there is to be renewed.
          return generation === undefined || generation < pin.generation
        })
        const stages = request.stages.filter(id => {
          const lost = (medium.stages.get(id) ?? 0) <= now()
          if (!lost) medium.stages.set(id, now() + request.stageTtlMs)
          return lost
        })
        return { pins, stages }
      }),

    release: (rows, call) =>
      atomic(call, () => {
        for (const { key, pin } of rows) {
          const generation = medium.pins.get(key)?.get(pin.owner)
          if (generation !== undefined && generation <= pin.generation) medium.unpin(key, pin.owner)
        }
      })
  }
}
