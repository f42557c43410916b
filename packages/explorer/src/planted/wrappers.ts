/** Planted bugs around an engine: a step too many, in the wrong order, or left out. */
import type { Locator } from '@alkblobs/core/engine'
import type { Bug, Planting } from '../bug.js'
import { Bodies, type SealedBody } from '../durable/bodies.js'

export const epochOpensLate: Bug = {
  name: 'pins are looked at after the sources were read',
  breaks: 'the order of a sweep: its lease opens the epoch, then the sources are read',
  catalog: (inner, { mem }) => ({
    ...inner,
    lease: async call => {
      const lease = await inner.lease(call)
      mem?.held?.epoch.clear()
      return lease
    },
    maintain: async (lease, call) => {
      for (const key of mem?.pins.keys() ?? []) mem?.held?.epoch.add(key)
      return inner.maintain(lease, call)
    }
  })
}

export const epochEndsWithPins: Bug = {
  name: 'what was pinned or put since a sweep began is not kept',
  breaks: 'ENG-LEASE-4, schedule 1 of the model',
  catalog: (inner, { mem }) => {
    const forget = async <T>(answer: Promise<T>): Promise<T> => {
      const answered = await answer
      mem?.held?.epoch.clear()
      return answered
    }
    return {
      ...inner,
      lease: call => forget(inner.lease(call)),
      publish: (items, call) => forget(inner.publish(items, call)),
      pin: (items, call) => forget(inner.pin(items, call))
    }
  }
}

/** Pins in one catalog, entries in another: a put is two transactions, and so is a removal. */
export const splitAuthority: Bug = {
  name: 'the pin of a key and its entry are two authorities',
  breaks: 'one authority for a key, schedule 5 of the model',
  catalog: (inner, { world, who, durable }: Planting) => ({
    ...inner,
    publish: async (items, call) => {
      for (const { key, pin } of items) {
        if (pin === undefined || durable === undefined) continue
        const owners = durable.pins.get(key) ?? new Map()
        owners.set(pin.row.owner, { generation: pin.row.generation, expiresAt: world.clockMs + pin.ttlMs })
        durable.pins.set(key, owners)
        const row = durable.window.get(key)
        if (row !== undefined) durable.window.set(key, { ...row, cancelled: true })
      }
      await world.happening(who, 'publish, in the other catalog', { writes: ['*'] }, () => undefined)
      return inner.publish(items, call)
    },
    remove: async (items, trashDelayMs, lease, call) => {
      const decided = items.filter(({ key, live }) => {
        const isPinned = (durable?.pinnedBy(key, world.clockMs).length ?? 0) > 0
        return !live && !isPinned && durable?.window.get(key)?.cancelled === false
      })
      if (decided.length === 0) return inner.remove(items, trashDelayMs, lease, call)
      await world.happening(who, 'remove , in the other catalog', { writes: ['*'] }, () => {
        for (const { key } of decided) for (const rows of [durable?.entries, durable?.window]) rows?.delete(key)
      })
      return items.map(() => ({ outcome: 'deleted', entry: undefined }))
    }
  })
}

export const dropsBeforeRemoving: Bug = {
  name: 'a removal drops the body before its transaction',
  breaks: 'the order of remove, trash and drop',
  catalog: (inner, { world, who, bodies, durable }) => ({
    ...inner,
    remove: async (items, trashDelayMs, lease, call) => {
      for (const { key, live } of items) {
        const place = durable?.entries.get(key)?.entry.place
        if (!live && place?.tier === 'large') bodies.drop(place.locator)
      }
      await world.happening(who, 'remove, after the drop', { writes: ['*'] }, () => undefined)
      return inner.remove(items, trashDelayMs, lease, call)
    }
  })
}

class BodiesByKey extends Bodies {
  protected override keep(body: SealedBody): Locator {
    const locator = `shared.${body.key.slice('sha256:'.length)}.${body.bytes.length}` as Locator
    this.medium.sealed.set(locator, body)
    return locator
  }
}

export const reusesLocators: Bug = {
  name: 'a body lies under a name made from its key',
  breaks: 'BODY-SEAL-1, locators are never used twice',
  bodies: (_, { bodies }) => new BodiesByKey(bodies)
}

export const scanFindsNothing: Bug = {
  name: 'a body made after its stage had ended is never looked for',
  breaks: 'BODY-SCAN-1, schedule 7 of the model',
  bodies: inner => ({
    claimed: call => inner.claimed(call),
    claim: (claim, call) => inner.claim(claim, call),
    create: (stage, hint, call) => inner.create(stage, hint, call),
    read: (locator, range, call) => inner.read(locator, range, call),
    length: (locator, call) => inner.length(locator, call),
    drop: (what, call) => inner.drop(what, call),
    scan: async () => ({ found: [], next: undefined })
  })
}
