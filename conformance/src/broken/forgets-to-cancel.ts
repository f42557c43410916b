/** Fault: a put that finds its entry staged takes a pin but leaves the window row as it is. */
import type { BlobKey, Catalog, Removal, RemoveOutcome } from '@alkblobs/core/engine'
import { tapped } from '../tap.js'
import type { PlantedFault } from './fault.js'

/** Removes the entry as an engine would whose row was never cancelled; `cancelled` if something else protects it. */
async function removeAllTheSame(
  inner: Catalog,
  key: BlobKey,
  rest: [number, Parameters<Catalog['remove']>[3]]
): Promise<RemoveOutcome> {
  const [trashDelayMs, call] = rest
  const marked = await inner.mark(key, call)
  if (typeof marked === 'string') return { outcome: 'cancelled' }
  const item: Removal = { kind: 'marked', key, mark: marked.mark, live: false }
  return (await inner.remove([item], trashDelayMs, undefined, call))[0] ?? { outcome: 'cancelled' }
}

/** Between sweeps only: a put beside a running sweep is remembered as it should be. */
export const forgetsToCancel: PlantedFault = {
  name: 'forgets to cancel',
  statement: 'publish answers `existed` without marking the window row of the key as cancelled (ENG-PUBLISH-6)',
  needs: ['durable', 'kv-only'],
  caughtBy: ['a_reput_of_a_staged_key_cancels_it'],
  plant: () => {
    const staged = new Set<BlobKey>()
    const forgotten = new Set<BlobKey>()
    let sweeping = false
    return definition =>
      tapped(definition, {
        catalog: inner => ({
          async lease(call) {
            const lease = await inner.lease(call)
            if (lease === undefined) return undefined
            sweeping = true
            const release = lease.release.bind(lease)
            return Object.assign(lease, {
              release: () => {
                sweeping = false
                return release()
              }
            })
          },
          async stageCandidates(lease, keys, call) {
            const taken = await inner.stageCandidates(lease, keys, call)
            for (const key of taken) staged.add(key)
            return taken
          },
          async publish(items, call) {
            const outcomes = await inner.publish(items, call)
            for (const [at, { key, pin }] of items.entries()) {
              if (!sweeping && pin !== undefined && outcomes[at]?.outcome === 'existed' && staged.has(key))
                forgotten.add(key)
            }
            return outcomes
          },
          async remove(items, trashDelayMs, lease, call) {
            const outcomes = [...(await inner.remove(items, trashDelayMs, lease, call))]
            for (const [at, item] of items.entries()) {
              if (item.kind !== 'candidate') continue
              const spared = outcomes[at]?.outcome === 'cancelled' && !item.live
              staged.delete(item.key)
              if (forgotten.delete(item.key) && spared)
                outcomes[at] = await removeAllTheSame(inner, item.key, [trashDelayMs, call])
            }
            return outcomes
          }
        })
      })
  }
}
