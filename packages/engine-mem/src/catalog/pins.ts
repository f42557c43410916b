/** Protection of entries that exist: `pin`, `renew`, `release`. */
import type { Catalog } from '@alkblobs/core/engine'
import { atomic, type Medium, now } from '../medium.js'
import type { Session } from '../session.js'

export function pins(medium: Medium, session: Session): Pick<Catalog, 'pin' | 'renew' | 'release'> {
  return {
    pin: (items, call) =>
      atomic(call, () =>
        items.map(({ key, pin: row, ttlMs }) => {
          const entry = medium.entries.get(key)?.entry
          if (entry !== undefined) session.protect(key, { row, ttlMs })
          return entry
        })
      ),

    renew: (request, call) =>
      atomic(call, () => {
        const pins = request.pins.filter(({ key, pin }) => {
          const found = medium.pins.get(key)?.get(pin.owner)
          if (found === undefined || found.generation < pin.generation) return true
          if (found.expiresAt <= now()) {
            if (!request.revive) return true
            // While it was expired its key may have been staged or marked (ENG-RENEW-3).
            medium.protect(key, undefined)
          }
          medium.renew(key, pin.owner, request.pinTtlMs)
          return false
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
          const found = medium.pins.get(key)?.get(pin.owner)
          if (found !== undefined && found.generation <= pin.generation) medium.unpin(key, pin.owner)
        }
      })
  }
}
