/** Engines that are wrong in ways that only a sequence of steps shows: planted for the store model, beside those of the suite. */
import { tapped } from '@alkblobs/conformance'
import type { PlantedFault } from '@alkblobs/conformance/broken'

type ModelFault = Omit<PlantedFault, 'caughtBy'>

/** A candidate that a source called live after it was staged is removed all the same. */
const ignoresSources: ModelFault = {
  name: 'ignores sources',
  statement: 'remove takes a candidate although `live` is true (ENG-REMOVE-2)',
  needs: ['durable', 'kv-only'],
  plant: () => definition =>
    tapped(definition, {
      catalog: inner => ({
        remove: (items, trashDelayMs, lease, call) =>
          inner.remove(
            items.map(item => ({ ...item, live: false })),
            trashDelayMs,
            lease,
            call
          )
      })
    })
}

/** A holder whose row was reaped is not told. */
const losesNothing: ModelFault = {
  name: 'loses nothing',
  statement: 'renew does not answer the pins it did not find (ENG-RENEW-1)',
  needs: ['durable', 'kv-only', 'age'],
  plant: () => definition =>
    tapped(definition, {
      catalog: inner => ({
        renew: async (request, call) => ({ ...(await inner.renew(request, call)), pins: [] })
      })
    })
}

/** A writer that slept past the life of its stage finds it again. */
const revivesStages: ModelFault = {
  name: 'revives stages',
  statement: 'a stage that has expired or was reclaimed is written anew before it is published (ENG-PUBLISH-2)',
  needs: ['durable', 'dual-tier', 'age'],
  plant: () => definition =>
    tapped(definition, {
      catalog: inner => ({
        staged: async stages => stages.map(() => true),
        async publish(items, call) {
          for (const { bytes } of items) {
            if (bytes.kind !== 'staged' || (await inner.staged([bytes.stage], call))[0] === true) continue
            await inner.unstage([bytes.stage], call)
            await inner.stage([{ id: bytes.stage, ttlMs: 60_000 }], call)
          }
          return await inner.publish(items, call)
        }
      })
    })
}

/** The trash row ends, the body stays. */
const dropsInWords: ModelFault = {
  name: 'drops in words',
  statement: 'drop answers that a body is gone, and removes nothing (BODY-DROP-1)',
  needs: ['dual-tier', 'inline', 'medium'],
  plant: () => definition =>
    tapped(definition, { bodies: () => ({ drop: async what => what.map(name => ({ what: name })) }) })
}

/** All of them. */
export const modelFaults: readonly ModelFault[] = [ignoresSources, losesNothing, revivesStages, dropsInWords]
