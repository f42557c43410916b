/** Where bytes lie, seen on the medium: routing by length, falling through between tiers, and nothing left over. */

import type { Store } from '@alkblobs/core'
import { bytesOf, tierLengths } from '../content.js'
import { equal, present, sameBytes } from '../expect.js'
import { type MediumCounts, oracleOf, type StoreFactory } from '../factory.js'
import { over, row } from '../row.js'
import { PUT_PATHS } from '../sources.js'
import { collect, expectCollected, putReleased, sourceOver } from '../sweeping.js'

const placed = ({ inlineEntries, bodies }: MediumCounts) => ({ inlineEntries, bodies })

/**
 * Contract stamp: docs/spec/store-api.md#modes-and-thresholds
 * Contract stamp: docs/adr/003-put-paths-and-dispatch.md#decision
 */
const routing = row({
  name: 'routing_is_a_pure_function_of_length_across_put_paths_and_re_puts',
  statement:
    'Length alone decides the tier: on every put path, in any order, and however often the content is put again.',
  stamps: ['docs/spec/store-api.md#modes-and-thresholds', 'docs/adr/003-put-paths-and-dispatch.md#decision'],
  invariant: 'INV-7',
  needs: ['dual-tier', 'medium'],
  run: over(async (store, factory) => {
    const oracle = oracleOf(factory, store)
    store.protect(sourceOver([]))
    for (const [tier, length] of tierLengths(factory).entries()) {
      const expected = tier === 0 ? { inlineEntries: 1, bodies: 0 } : { inlineEntries: 0, bodies: 1 }
      for (const first of PUT_PATHS) {
        const made = await first.put(store, bytesOf(length, 4))
        equal(placed(await oracle.counts()), expected, `${length} bytes as ${first.name}`)
        equal(present(await store.stat(made.key), 'a record').tier, tier === 0 ? 'kv' : 'large', 'stat tells the tier')
        for (const again of PUT_PATHS) await (await again.put(store, bytesOf(length, 4))).release()
        equal(placed(await oracle.counts()), expected, `${length} bytes as ${first.name}, put again by every path`)
        await made.release()
        await expectCollected(store, 1, length, 'one entry is collected')
        equal(placed(await oracle.counts()), { inlineEntries: 0, bodies: 0 }, 'the medium is empty again')
      }
    }
  })
})

async function expectBoundary(store: Store, factory: StoreFactory): Promise<void> {
  const oracle = oracleOf(factory, store)
  const { threshold } = store
  const before = await oracle.counts()
  for (const [nth, path] of PUT_PATHS.entries()) {
    for (const length of [threshold - 1, threshold]) await path.put(store, bytesOf(length, nth))
    await path.put(store, bytesOf(threshold + 1, nth))
    const counts = await oracle.counts()
    equal(
      counts.inlineEntries - before.inlineEntries,
      2 * (nth + 1),
      `up to ${threshold} bytes as ${path.name} lie in the kv tier`
    )
    equal(counts.bodies - before.bodies, nth + 1, `above ${threshold} bytes as ${path.name} lie in the large tier`)
  }
}

/**
 * Contract stamp: docs/spec/store-api.md#modes-and-thresholds
 * Contract stamp: docs/adr/003-put-paths-and-dispatch.md#decision
 */
const boundary = row({
  name: 'threshold_boundary_lengths_route_deterministically',
  statement:
    'One below and at the threshold go to the kv tier, one above to the large tier: for a tuned and for the shipped threshold.',
  stamps: ['docs/spec/store-api.md#modes-and-thresholds', 'docs/adr/003-put-paths-and-dispatch.md#decision'],
  invariant: 'INV-7',
  needs: ['dual-tier', 'medium'],
  async run(factory) {
    for (const threshold of [factory.threshold ?? 4096, 128 * 1024, 16]) {
      const store = await factory.open({ threshold })
      equal(store.threshold, threshold, 'the store tells its threshold')
      await expectBoundary(store, factory)
      await store.close()
    }
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/store-api.md#reading
 * Contract stamp: docs/adr/006-read-path.md#decision
 * Contract stamp: docs/adr/011-modes.md#decision
 */
const fallThrough = row({
  name: 'kv_tier_misses_fall_through_to_the_large_tier_per_op',
  statement:
    'get, stat, has, pin, ranges and delete find an entry in whichever tier it lies, and miss in both with one answer.',
  stamps: ['docs/spec/store-api.md#reading', 'docs/adr/006-read-path.md#decision', 'docs/adr/011-modes.md#decision'],
  invariant: 'INV-7',
  needs: ['dual-tier', 'medium'],
  run: over(async (store, factory) => {
    const oracle = oracleOf(factory, store)
    for (const length of tierLengths(factory)) {
      const bytes = bytesOf(length, 6)
      const { key } = await putReleased(store, bytes)
      sameBytes(await present(await store.get(key), 'get').bytes(), bytes, 'get')
      sameBytes(
        await present(await store.get(key), 'get')
          .slice(3, 60)
          .bytes(),
        bytes.slice(3, 60),
        'a range'
      )
      equal(present(await store.stat(key), 'stat').length, length, 'stat')
      equal(await store.has(key), true, 'has')
      await present(await store.pin(key), 'pin').release()
      equal(await store.delete(key), true, 'delete')
      equal(
        [await store.get(key), await store.stat(key), await store.has(key), await store.pin(key)],
        [undefined, undefined, false, undefined],
        'a miss in both tiers'
      )
    }
    equal(placed(await oracle.counts()), { inlineEntries: 0, bodies: 0 }, 'nothing is left on the medium')
  })
})

/**
 * Contract stamp: docs/spec/store-api.md#modes-and-thresholds
 * Contract stamp: docs/spec/store-api.md#putting
 */
const thresholdChange = row({
  name: 'after_a_threshold_change_every_entry_is_found_in_either_tier',
  statement:
    'A pool reopened with another threshold serves what lies in the other tier, and a re-put finds it there: still one entry.',
  stamps: ['docs/spec/store-api.md#modes-and-thresholds', 'docs/spec/store-api.md#putting'],
  invariant: 'INV-2',
  needs: ['dual-tier', 'medium', 'reopen'],
  async run(factory) {
    const [small = 1, large = 1] = tierLengths(factory)
    let store = await factory.open()
    const keys = [(await store.put(bytesOf(small, 8))).key, (await store.put(bytesOf(large, 8))).key]
    for (const threshold of [small - 1, large + 1]) {
      store = present(await factory.reopen?.(store, { threshold }), 'the pool reopened')
      const before = placed(await oracleOf(factory, store).counts())
      for (const [at, length] of [small, large].entries()) {
        const bytes = bytesOf(length, 8)
        const key = present(keys[at], 'a key')
        sameBytes(await present(await store.get(key), 'it is found').bytes(), bytes, 'it is read')
        for (const path of PUT_PATHS) {
          const again = await path.put(store, bytes)
          equal([again.key, again.created], [key, false], `a re-put as ${path.name} finds it in its tier`)
          await again.release()
        }
      }
      equal(placed(await oracleOf(factory, store).counts()), before, 'nothing moved, and nothing is there twice')
    }
    store.protect(sourceOver([]))
    equal((await collect(store)).deleted, 2, 'there were two entries')
    await store.close()
    await factory.teardown()
  }
})

export const placementRows = [routing, boundary, fallThrough, thresholdChange]
