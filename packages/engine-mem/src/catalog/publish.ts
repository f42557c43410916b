/** Makes entries, finds them, heals them: `publish`. */
import type { Catalog, Place, Publication, PublishedBytes, PublishOutcome } from '@alkblobs/core/engine'
import { atomic, type Medium, now, type StoredEntry, samePlace } from '../medium.js'
import type { Session } from '../session.js'

export function publish(medium: Medium, session: Session): Pick<Catalog, 'publish'> {
  return {
    publish: (items, call) =>
      atomic(call, () => {
        medium.checkStamp()
        return items.map(item => publishOne(medium, session, item))
      })
  }
}

function publishOne(medium: Medium, session: Session, item: Publication): PublishOutcome {
  const { key, bytes } = item
  if (bytes.kind === 'staged' && (medium.stages.get(bytes.stage) ?? 0) <= now()) return { outcome: 'stage-lost' }

  const found = medium.entries.get(key)?.entry
  const heals = found !== undefined && item.healing !== undefined && samePlace(found.place, item.healing)
  if (found !== undefined && (bytes.kind === 'none' || !heals)) {
    session.protect(key, item.pin)
    return { outcome: 'existed', entry: found }
  }
  if (bytes.kind === 'none') return { outcome: 'absent' }

  const stored = storedFrom(item, bytes)
  if (bytes.kind === 'staged') medium.stages.delete(bytes.stage)
  if (found?.place.tier === 'large') medium.discard(found.place.locator, found, item.trashDelayMs)
  medium.entries.set(key, stored)
  session.protect(key, item.pin)
  return { outcome: heals ? 'healed' : 'created', entry: stored.entry }
}

function storedFrom({ key, length }: Publication, bytes: Exclude<PublishedBytes, { kind: 'none' }>): StoredEntry {
  if (bytes.kind === 'staged') {
    const place: Place = { tier: 'large', locator: bytes.locator }
    return { entry: Object.freeze({ key, length, place: Object.freeze(place) }) }
  }
  // A plain copy: `slice` of a Buffer would share the caller's memory.
  const body = new Uint8Array(bytes.body)
  const place: Place = { tier: 'kv', length: body.byteLength }
  return { entry: Object.freeze({ key, length, place: Object.freeze(place) }), body }
}
