/** Fault: an entry can be seen before its body is whole. */
import { type Publication, type PublishOutcome, WINDOW_LENGTH } from '@alkblobs/core/engine'
import { tapped } from '../tap.js'
import type { PlantedFault } from './fault.js'

/** Turns of the event loop in which the half entry lies open. */
const TURNS = 3

/** Long inline bodies are published in halves: the first half under the key, then the rest. */
export const publishesTooEarly: PlantedFault = {
  name: 'publishes too early',
  statement: 'publish makes the entry visible with half of its body, and completes it afterwards (ENG-PUBLISH-3)',
  needs: ['inline', 'mem-only'],
  caughtBy: ['an_entry_is_visible_only_once_it_is_whole'],
  plant: () => definition =>
    tapped(definition, {
      catalog: inner => ({
        async publish(items, call) {
          const one = async (item: Publication): Promise<PublishOutcome> => {
            const whole = await inner.publish([withOwnBody(item)], call)
            const outcome = whole[0] ?? { outcome: 'absent' }
            if (outcome.outcome !== 'created' || item.bytes.kind !== 'inline' || item.length <= WINDOW_LENGTH)
              return outcome
            const body = new Uint8Array(item.bytes.body.subarray(0, item.length >> 1))
            const half = { ...item, bytes: { kind: 'inline', body } as const, healing: outcome.entry.place }
            const [seen] = await inner.publish([half], call)
            for (let turn = 0; turn < TURNS; turn += 1) await new Promise<void>(done => setImmediate(done))
            if (seen?.outcome === 'healed') await inner.publish([{ ...item, healing: seen.entry.place }], call)
            return outcome
          }
          return await Promise.all(items.map(one))
        }
      })
    })
}

/** Of three publications only the last brings the body in the memory it came in, which whoever answers has done with (ENG-PUBLISH-8). */
function withOwnBody(item: Publication): Publication {
  const { bytes } = item
  return bytes.kind === 'inline' ? { ...item, bytes: { ...bytes, body: new Uint8Array(bytes.body) } } : item
}
