/** INV-1 and INV-9 for bodies that are large objects: windows over pages of the server, and objects that are not what their row says. */

import type { Store } from '@alkblobs/core'
import { WINDOW_LENGTH } from '@alkblobs/core/engine'
import { Corrupt } from '../codes.js'
import { bytesOf, tierLengths } from '../content.js'
import { codeOf, equal, holds, present, refuses, sameBytes, settled } from '../expect.js'
import { type Damage, oracleOf, type StoreFactory } from '../factory.js'
import { over, row } from '../row.js'
import { iterate } from '../sources.js'
import { expectCounts, putReleased, sourceOver } from '../sweeping.js'

/** What one row of the server's table of large objects holds. */
const PAGE_LENGTH = 2048

/** Everything that could be miscounted at one position. */
const around = (position: number) => [position - 1, position, position + 1]

/**
 * Contract stamp: docs/spec/store-api.md#ranges
 * Contract stamp: docs/spec/store-api.md#verification
 * Contract stamp: docs/spec/engine-contract.md#body-store
 */
const windows = row({
  name: 'lo_windows_read_across_window_boundaries_and_a_short_body_fails_cleanly',
  statement:
    'Ranges over the edges of windows and pages are exact and clamped; a row that claims more bytes than its object has is corruption, past them.',
  stamps: [
    'docs/spec/store-api.md#ranges',
    'docs/spec/store-api.md#verification',
    'docs/spec/engine-contract.md#body-store'
  ],
  invariant: 'INV-1',
  needs: ['dual-tier', 'large-objects', 'medium', 'corrupt'],
  run: over(async (store, factory) => {
    const size = 2 * WINDOW_LENGTH + PAGE_LENGTH + 77
    const bytes = bytesOf(size, 33)
    const { key } = await store.put(iterate([bytes]))
    const blob = present(await store.get(key), 'the entry is there')
    const points = [0, ...around(PAGE_LENGTH), ...around(WINDOW_LENGTH), ...around(size), 2 ** 32 + 5, 2 ** 53 - 1]
    for (const start of points) {
      for (const end of points) {
        sameBytes(await blob.slice(start, end).bytes(), bytes.slice(start, end), `${start} to ${end} of ${size}`)
      }
    }
    let longest = 0
    for await (const chunk of blob) longest = Math.max(longest, chunk.length)
    holds(longest <= WINDOW_LENGTH, 'a stream comes in windows of bounded size', `${longest} bytes in one chunk`)
    for (const how of ['truncate', 'empty'] as const satisfies readonly Damage[]) {
      await oracleOf(factory, store).corrupt?.(key, how)
      const short = present(await store.get(key), 'the row is there')
      await refuses(() => short.bytes(), Corrupt, `a whole read, damage "${how}"`)
      for (const [start, end] of [
        [size - 2, size],
        [0, size],
        [WINDOW_LENGTH - 1, 2 ** 53 - 1]
      ]) {
        const read = await settled(short.slice(start, end).bytes())
        equal('error' in read ? codeOf(read.error) : 'success', Corrupt, `${start} to ${end}, damage "${how}"`)
      }
      const before = await settled(short.slice(0, 10).bytes())
      if (how === 'truncate') holds('value' in before, 'a range before the missing byte can be read')
    }
    equal((await store.put(iterate([bytes]))).key, key, 'the content is put again')
    sameBytes(await present(await store.get(key), 'the entry is there').bytes(), bytes, 'and is whole')
    await store.verify({ repair: true })
    equal((await oracleOf(factory, store).counts()).stages, 0, 'no object without a row')
  })
})

const OWN_TABLES = ['lo_claim', 'lo_entries']

/** A pool with a candidate in each tier that a sweep has staged, and what the large tier's schema holds then. */
async function stagedInBoth(store: Store, factory: StoreFactory): Promise<readonly string[]> {
  store.protect(sourceOver([]))
  for (const length of tierLengths(factory)) await putReleased(store, bytesOf(length, 34))
  expectCounts(await store.sweep(), { candidatesStaged: 2 }, 'the staging sweep')
  equal((await oracleOf(factory, store).counts()).window, 2, 'the schedule holds both')
  return present(await oracleOf(factory, store).largeTables?.(), 'the names of tables')
}

/**
 * Contract stamp: docs/spec/engine-contract.md#the-catalog-beside-a-body-store
 * Contract stamp: docs/spec/sweep.md#durable-form
 */
const dormant = row({
  name: 'the_window_lives_on_the_kv_schema_and_the_pg_lo_schema_stays_dormant',
  statement:
    'Where the kv tier keeps a durable catalog, the schedule of both tiers is there; the catalog beside the large objects is never made.',
  stamps: ['docs/spec/engine-contract.md#the-catalog-beside-a-body-store', 'docs/spec/sweep.md#durable-form'],
  invariant: 'INV-4',
  needs: ['dual-tier', 'durable', 'medium', 'large-objects', 'dormant'],
  run: over(async (store, factory) => {
    equal(await stagedInBoth(store, factory), OWN_TABLES, 'the large tier has the tables of its bodies, and no other')
    const { deleted, pinsReaped, stagesReclaimed } = await store.sweep()
    equal(
      { deleted, pinsReaped, stagesReclaimed },
      { deleted: 2, pinsReaped: 0, stagesReclaimed: 0 },
      'both are executed'
    )
    equal(await oracleOf(factory, store).largeTables?.(), OWN_TABLES, 'after the removal too')
  })
})

/**
 * Contract stamp: docs/spec/engine-contract.md#the-catalog-beside-a-body-store
 * Contract stamp: docs/spec/sweep.md#durable-form
 */
const shared = row({
  name: 'each_key_has_one_authority_and_the_large_tiers_window_shows_large_keys_only',
  statement:
    'Beside a kv tier in memory the large tier keeps entries, pins and schedule of large keys alone, and reports are sums over both.',
  stamps: ['docs/spec/engine-contract.md#the-catalog-beside-a-body-store', 'docs/spec/sweep.md#durable-form'],
  invariant: 'INV-4',
  needs: ['dual-tier', 'durable', 'medium', 'large-objects', 'two-catalogs'],
  run: over(async (store, factory) => {
    const tables = await stagedInBoth(store, factory)
    holds(
      ['entries', 'gc_window'].every(name => tables.includes(name)),
      'the large tier has a catalog',
      `${tables}`
    )
    const alone = await factory.open({ windowDelayMs: 0 })
    equal((await alone.usage()).entries, 0, 'another pool sees none of it')
    const [small, large] = tierLengths(factory) as [number, number]
    const { perTier, window } = await store.usage()
    equal(
      { kv: perTier.kv.bytes, large: perTier.large.bytes, window },
      { kv: small, large, window: 2 },
      'usage is a sum'
    )
    expectCounts(
      await store.sweep(),
      { deleted: 2, bytesDeleted: small + large },
      'one sweep executes the schedules of both'
    )
    equal((await store.usage()).entries, 0, 'and nothing is left')
  })
})

export const largeObjectRows = [windows, dormant, shared]
