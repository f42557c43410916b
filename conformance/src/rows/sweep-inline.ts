/** INV-4 and INV-5 on the inline form: one sweep stages and executes, and its counts add up in one report. */

import { bytesOf, tierLengths } from '../content.js'
import { equal, holds, present, sameBytes } from '../expect.js'
import { PAGE_SIZE } from '../pages.js'
import { over, row } from '../row.js'
import { PUT_PATHS } from '../sources.js'
import { countsOf, expectAborted, expectCounts, putReleased, releasesArrived, sourceOver } from '../sweeping.js'
import { gate, tapped, watch } from '../tap.js'

/**
 * Contract stamp: docs/spec/sweep.md#inline-form
 * Contract stamp: docs/spec/sweep.md#report
 * Contract stamp: docs/adr/005-windows-and-sweeps.md#decision
 */
const exactCounts = row({
  name: 'sweep_counts_are_exact_across_the_full_protection_set',
  statement: 'A sweep takes exactly the entries that no source, no receipt and no pin protects, and counts every one.',
  stamps: [
    'docs/spec/sweep.md#inline-form',
    'docs/spec/sweep.md#report',
    'docs/adr/005-windows-and-sweeps.md#decision'
  ],
  invariant: 'INV-4',
  needs: ['inline'],
  run: over(async (store, factory) => {
    const lengths = tierLengths(factory)
    let bytes = 0
    // Released at the end: what nobody refers to any more counts as given back.
    const held: { release(): Promise<void> }[] = []
    const live: string[] = []
    const dead: string[] = []
    for (const [at, length] of lengths.entries()) {
      for (let nth = 0; nth < 3; nth += 1) live.push((await putReleased(store, bytesOf(length, 10 + nth))).key)
      for (let nth = 0; nth < 5; nth += 1) {
        dead.push((await putReleased(store, bytesOf(length, 20 + nth))).key)
        bytes += length
      }
      held.push(await store.put(bytesOf(length, 30 + at)))
      held.push(present(await store.pin((await putReleased(store, bytesOf(length, 40 + at))).key), 'a pin'))
    }
    store.protect(sourceOver(live.slice(1), 'enumerated'))
    store.protect({ name: 'asked', isLive: async keys => keys.filter(key => key === live[0]) })
    const tiers = lengths.length
    const first = await store.sweep()
    expectCounts(
      first,
      { live: 5 * tiers, candidatesStaged: 5 * tiers, deleted: 5 * tiers, bytesDeleted: bytes },
      'the sweep'
    )
    for (const key of dead) equal(await store.has(key), false, 'an unprotected entry is gone')
    for (const key of live) equal(await store.has(key), true, 'a live entry is there')
    expectCounts(await store.sweep(), { live: 5 * tiers }, 'a second sweep finds nothing more')
    for (const each of held) await each.release()
  })
})

/**
 * Contract stamp: docs/spec/sweep.md#lease
 * Contract stamp: docs/adr/013-lease-and-defaults.md#decision
 */
const singleFlight = row({
  name: 'sweep_is_single_flight_the_contended_second_aborts_as_data',
  statement:
    'Of two sweeps at once one runs to its end; the other answers a report that it was locked out, all counts zero.',
  stamps: ['docs/spec/sweep.md#lease', 'docs/adr/013-lease-and-defaults.md#decision'],
  invariant: 'INV-4',
  needs: ['inline'],
  cases: ['O17'],
  run: over(async store => {
    const held = gate()
    let asked = 0
    store.protect({ name: 'slow', live: () => (asked++ === 0 ? held.pass().then(() => []) : []) })
    const { length } = await putReleased(store, bytesOf(64, 1))
    const holder = store.sweep()
    await held.reached
    expectAborted(await store.sweep(), 'SweeperLock', 'the second sweeper is locked out')
    held.open()
    expectCounts(await holder, { candidatesStaged: 1, deleted: 1, bytesDeleted: length }, 'the holder runs to its end')
    expectCounts(await store.sweep(), {}, 'the lease is free again')
  })
})

/**
 * Contract stamp: docs/spec/sweep.md#inline-form
 * Contract stamp: docs/spec/sweep.md#pins
 */
const racingPut = row({
  name: 'sweep_racing_a_pinned_put_never_deletes_the_protected_entry',
  statement: 'A put that begins or ends at any point of a sweep and holds its pin has its entry afterwards.',
  stamps: ['docs/spec/sweep.md#inline-form', 'docs/spec/sweep.md#pins'],
  invariant: 'INV-4',
  needs: ['inline'],
  cases: ['O02', 'O11'],
  async run(factory) {
    let put: (() => Promise<void>) | undefined
    let points = 0
    let target = 0
    const point = async () => {
      points += 1
      if (points !== target || put === undefined) return
      const run = put
      put = undefined
      await run()
    }
    const sweeping = new Set(['lease', 'candidates', 'stageCandidates', 'due', 'remove'])
    const around = async (operation: string) => (sweeping.has(operation) ? await point() : undefined)
    const store = await factory.open({ wrap: watch({ before: around, after: around }) })
    store.protect({ name: 'slow', live: () => point().then(() => []) })
    for (const length of tierLengths(factory)) {
      for (target = 1; ; target += 1) {
        const bytes = bytesOf(length, target)
        await putReleased(store, bytes)
        await putReleased(store, bytesOf(length, 900))
        await releasesArrived(store)
        points = 0
        let key: string | undefined
        let release = async () => {}
        put = async () => {
          const receipt = await store.put(bytes)
          key = receipt.key
          release = () => receipt.release()
        }
        const report = await store.sweep()
        put = undefined
        if (key === undefined) break
        equal(report.aborted, undefined, 'the sweep runs to its end')
        const blob = present(await store.get(key), `an entry put at point ${target} of a sweep is there`)
        sameBytes(await blob.bytes(), bytes, `its bytes are whole (point ${target})`)
        await release()
      }
    }
    holds(target > 5, 'the race was run at every point of a sweep', `${target} points`)
    await store.close()
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/store-api.md#listing
 * Contract stamp: docs/spec/engine-contract.md#catalog
 * Contract stamp: docs/adr/005-windows-and-sweeps.md#decision
 */
const listThroughSweeps = row({
  name: 'list_correctness_is_observable_through_sweep_outcomes',
  statement: 'Every entry is listed exactly once across pages: a sweep finds each of them, and none twice.',
  stamps: [
    'docs/spec/store-api.md#listing',
    'docs/spec/engine-contract.md#catalog',
    'docs/adr/005-windows-and-sweeps.md#decision'
  ],
  invariant: 'INV-5',
  needs: ['inline'],
  run: over(async (store, factory) => {
    const total = PAGE_SIZE + 50
    const keys: string[] = []
    let bytes = 0
    for (let at = 0; at < total; at += 1) {
      const length = tierLengths(factory)[at % 25 === 0 ? tierLengths(factory).length - 1 : 0] ?? 1
      keys.push((await putReleased(store, bytesOf(length, at))).key)
      bytes += length
    }
    const registration = store.protect(sourceOver(keys))
    expectCounts(await store.sweep(), { live: total }, 'every live entry is seen exactly once')
    registration.remove()
    store.protect(sourceOver(keys.slice(0, 10)))
    const report = await store.sweep()
    equal(
      { live: report.live, deleted: report.deleted },
      { live: 10, deleted: total - 10 },
      'every dead entry is found'
    )
    holds(report.bytesDeleted < bytes, 'the live ones keep their bytes')
    const left: string[] = []
    for await (const { key } of store.list()) left.push(key)
    equal(left, keys.slice(0, 10).sort(), 'what is left is listed in key order')
  })
})

/**
 * Contract stamp: docs/spec/sweep.md#inline-form
 * Contract stamp: docs/adr/012-sweep-report-and-forms.md#decision
 */
const bothTiers = row({
  name: 'sweep_counts_stay_exact_over_both_tiers',
  statement:
    'Entries of both tiers are staged, deleted and counted by the same sweep, and the large bodies are dropped with it.',
  stamps: ['docs/spec/sweep.md#inline-form', 'docs/adr/012-sweep-report-and-forms.md#decision'],
  invariant: 'INV-4',
  needs: ['inline', 'dual-tier', 'medium'],
  run: over(async (store, factory) => {
    const [small = 1, large = 1] = tierLengths(factory)
    const live: string[] = []
    for (let at = 0; at < 4; at += 1) {
      live.push((await putReleased(store, bytesOf(small, at))).key, (await putReleased(store, bytesOf(large, at))).key)
      for (const path of PUT_PATHS) {
        await (await path.put(store, bytesOf(small, 50 + at))).release()
        await (await path.put(store, bytesOf(large, 50 + at))).release()
      }
    }
    store.protect(sourceOver(live))
    const bytesDeleted = 4 * (small + large)
    expectCounts(
      await store.sweep(),
      { live: 8, candidatesStaged: 8, deleted: 8, bytesDeleted },
      'both tiers are swept'
    )
    const counts = present(await factory.medium?.(store).counts(), 'an oracle')
    equal(
      { inline: counts.inlineEntries, bodies: counts.bodies, trash: counts.trash },
      { inline: 4, bodies: 4, trash: 0 },
      'the medium'
    )
  })
})

// O05, G2: the reference that arbitration sees is the one that counts.
/**
 * Contract stamp: docs/spec/sweep.md#inline-form
 * Contract stamp: docs/spec/engine-contract.md#publish
 */
const reputMidSweep = row({
  name: 'a_reput_of_a_candidate_cancels_it_within_the_sweep',
  statement:
    'A put that finds an entry a running sweep has staged keeps it, even when its pin is released before the removal.',
  stamps: ['docs/spec/sweep.md#inline-form', 'docs/spec/engine-contract.md#publish'],
  invariant: 'INV-4',
  needs: ['inline'],
  cases: ['O10'],
  async run(factory) {
    const held = gate()
    const wrap = (definition: Parameters<typeof tapped>[0]) =>
      tapped(definition, {
        catalog: inner => ({
          async remove(...args: Parameters<typeof inner.remove>) {
            await held.pass()
            return await inner.remove(...args)
          }
        })
      })
    const store = await factory.open({ wrap })
    store.protect(sourceOver([]))
    const bytes = bytesOf(tierLengths(factory).at(-1) ?? 1, 10)
    const { key } = await putReleased(store, bytes)
    const sweep = store.sweep()
    await held.reached
    await putReleased(store, bytes)
    held.open()
    const report = await sweep
    expectCounts(report, { candidatesStaged: 1, cancelledByArbitration: 1 }, 'the candidate is cancelled')
    equal(await store.has(key), true, 'the entry is there')
    equal(countsOf(await store.sweep()).deleted, 1, 'and the next sweep takes it')
    await store.close()
    await factory.teardown()
  }
})

export const inlineSweepRows = [exactCounts, singleFlight, racingPut, listThroughSweeps, bothTiers, reputMidSweep]
