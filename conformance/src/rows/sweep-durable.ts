/** INV-4 and INV-5 on the durable form: staged by one sweep, executed by a later one; window delay 0 unless a row is about it. */

import { bytesOf, tierLengths } from '../content.js'
import { equal, holds, present, sameBytes } from '../expect.js'
import { oracleOf } from '../factory.js'
import { PAGE_SIZE } from '../pages.js'
import { over, row } from '../row.js'
import { expectAborted, expectCounts, putReleased, sourceOver } from '../sweeping.js'
import { gate, tapped } from '../tap.js'

/**
 * Contract stamp: docs/spec/sweep.md#durable-form
 * Contract stamp: docs/spec/sweep.md#report
 * Contract stamp: docs/adr/012-sweep-report-and-forms.md#decision
 */
const twoSweeps = row({
  name: 'two_sweep_exact_counts_over_the_full_protection_set',
  statement:
    'The first sweep stages exactly what nobody protects and deletes nothing; the second deletes exactly that.',
  stamps: [
    'docs/spec/sweep.md#durable-form',
    'docs/spec/sweep.md#report',
    'docs/adr/012-sweep-report-and-forms.md#decision'
  ],
  invariant: 'INV-4',
  needs: ['durable', 'medium'],
  run: over(async (store, factory) => {
    const lengths = tierLengths(factory)
    let bytes = 0
    // Released at the end: what nobody refers to any more counts as given back.
    const held: { release(): Promise<void> }[] = []
    const live: string[] = []
    for (const [at, length] of lengths.entries()) {
      for (let nth = 0; nth < 3; nth += 1) live.push((await putReleased(store, bytesOf(length, 10 + nth))).key)
      for (let nth = 0; nth < 5; nth += 1) {
        await putReleased(store, bytesOf(length, 20 + nth))
        bytes += length
      }
      held.push(await store.put(bytesOf(length, 30 + at)))
      held.push(present(await store.pin((await putReleased(store, bytesOf(length, 40 + at))).key), 'a pin'))
    }
    store.protect(sourceOver(live.slice(1), 'enumerated'))
    store.protect({ name: 'asked', isLive: async keys => keys.filter(key => key === live[0]) })
    const tiers = lengths.length
    expectCounts(await store.sweep(), { live: 5 * tiers, candidatesStaged: 5 * tiers }, 'the staging sweep')
    const oracle = oracleOf(factory, store)
    equal((await oracle.counts()).window, 5 * tiers, 'the schedule holds what was staged')
    expectCounts(
      await store.sweep(),
      { live: 5 * tiers, deleted: 5 * tiers, bytesDeleted: bytes },
      'the executing sweep'
    )
    equal((await oracle.counts()).window, 0, 'the schedule is empty again')
    expectCounts(await store.sweep(), { live: 5 * tiers }, 'a third sweep finds nothing more')
    for (const key of live) equal(await store.has(key), true, 'a live entry is there')
    for (const each of held) await each.release()
  })
})

// O10
/**
 * Contract stamp: docs/spec/sweep.md#durable-form
 * Contract stamp: docs/spec/sweep.md#invariants
 * Contract stamp: docs/adr/005-windows-and-sweeps.md#decision
 */
const putInWindow = row({
  name: 'a_put_landing_during_the_window_survives_the_executing_sweep',
  statement: 'A put of a staged content keeps its entry through the sweep that would have executed it.',
  stamps: [
    'docs/spec/sweep.md#durable-form',
    'docs/spec/sweep.md#invariants',
    'docs/adr/005-windows-and-sweeps.md#decision'
  ],
  invariant: 'INV-4',
  needs: ['durable'],
  cases: ['O10'],
  run: over(async (store, factory) => {
    store.protect(sourceOver([]))
    for (const length of tierLengths(factory)) {
      const [kept, lost] = [bytesOf(length, 1), bytesOf(length, 2)]
      await putReleased(store, kept)
      await putReleased(store, lost)
      expectCounts(await store.sweep(), { candidatesStaged: 2 }, 'both are staged')
      const receipt = await store.put(kept)
      equal(receipt.created, false, 'the put finds the staged entry')
      const counts = { live: 1, deleted: 1, cancelledByArbitration: 1, bytesDeleted: length }
      expectCounts(await store.sweep(), counts, 'the executing sweep spares what was put')
      sameBytes(await present(await store.get(receipt.key), 'the entry is there').bytes(), kept, 'its bytes are whole')
      equal(await store.delete(receipt.key).catch(() => 'refused'), 'refused', 'it is still pinned')
      await receipt.release()
      equal(await store.delete(receipt.key), true, 'and can go when it is released')
    }
  })
})

// O10: the mark alone protects, without the pin
/**
 * Contract stamp: docs/spec/sweep.md#durable-form
 * Contract stamp: docs/spec/engine-contract.md#publish
 */
const reputCancels = row({
  name: 'a_reput_of_a_staged_key_cancels_it',
  statement:
    'A put of a staged content, released again, restarts the wait: the row counts as cancelled, and the key may be staged anew.',
  stamps: ['docs/spec/sweep.md#durable-form', 'docs/spec/engine-contract.md#publish'],
  invariant: 'INV-4',
  needs: ['durable'],
  cases: ['O10'],
  run: over(async (store, factory) => {
    store.protect(sourceOver([]))
    for (const length of tierLengths(factory)) {
      const bytes = bytesOf(length, 3)
      await putReleased(store, bytes)
      expectCounts(await store.sweep(), { candidatesStaged: 1 }, 'the entry is staged')
      await putReleased(store, bytes)
      const counts = { cancelledByArbitration: 1, candidatesStaged: 1 }
      expectCounts(await store.sweep(), counts, 'the re-put cancelled the row, and the same sweep stages the key anew')
      expectCounts(await store.sweep(), { deleted: 1, bytesDeleted: length }, 'the sweep after that takes it')
    }
  })
})

// O17
/**
 * Contract stamp: docs/spec/sweep.md#lease
 * Contract stamp: docs/adr/013-lease-and-defaults.md#decision
 */
const contended = row({
  name: 'the_contended_second_sweeper_aborts_as_data_and_the_holder_stages_only',
  statement: 'Of two sweeps at once one is locked out and says so; the holder stages, and executes nothing it staged.',
  stamps: ['docs/spec/sweep.md#lease', 'docs/adr/013-lease-and-defaults.md#decision'],
  invariant: 'INV-4',
  needs: ['durable'],
  cases: ['O17'],
  async run(factory) {
    const store = await factory.open({ instanceId: 'twin' })
    // Two instances under one label, as containers that share a hostname: the label is no identity.
    const other = await factory.second?.(store, { instanceId: 'twin' })
    const held = gate()
    let asked = 0
    store.protect({ name: 'slow', live: () => (asked++ === 0 ? held.pass().then(() => []) : []) })
    other?.protect(sourceOver([]))
    const { length } = await putReleased(store, bytesOf(64, 1))
    const holder = store.sweep()
    await held.reached
    expectAborted(await store.sweep(), 'SweeperLock', 'a second sweep of the same instance')
    if (other !== undefined) expectAborted(await other.sweep(), 'SweeperLock', 'a sweep of another instance')
    held.open()
    expectCounts(await holder, { candidatesStaged: 1 }, 'the holder stages and executes nothing')
    expectCounts(await (other ?? store).sweep(), { deleted: 1, bytesDeleted: length }, 'the lease is free for the next')
    await other?.close()
    await store.close()
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/store-api.md#listing
 * Contract stamp: docs/spec/sweep.md#durable-form
 * Contract stamp: docs/adr/005-windows-and-sweeps.md#decision
 */
const listThroughSchedule = row({
  name: 'list_correctness_is_observable_through_durable_schedule_outcomes',
  statement: 'Every entry is listed exactly once across pages: staged once, deleted once, none forgotten.',
  stamps: [
    'docs/spec/store-api.md#listing',
    'docs/spec/sweep.md#durable-form',
    'docs/adr/005-windows-and-sweeps.md#decision'
  ],
  invariant: 'INV-5',
  needs: ['durable'],
  run: over(async (store, factory) => {
    const total = PAGE_SIZE + 50
    const lengths = tierLengths(factory)
    const put = (at: number) => putReleased(store, bytesOf(lengths[at % 25 === 0 ? lengths.length - 1 : 0] ?? 1, at))
    const keys: string[] = []
    for (let at = 0; at < total; at += 50) {
      keys.push(...(await Promise.all(Array.from({ length: 50 }, (_, nth) => put(at + nth)))).map(({ key }) => key))
    }
    const registration = store.protect(sourceOver(keys))
    expectCounts(await store.sweep(), { live: total }, 'every live entry is seen exactly once')
    registration.remove()
    store.protect(sourceOver(keys.slice(0, 10)))
    expectCounts(await store.sweep(), { live: 10, candidatesStaged: total - 10 }, 'every dead entry is staged once')
    equal((await store.sweep({ dryRun: true })).alreadyStaged, total - 10, 'every staged entry is known as staged')
    const executed = await store.sweep()
    equal(
      { live: executed.live, deleted: executed.deleted },
      { live: 10, deleted: total - 10 },
      'every staged entry is deleted once'
    )
    const left: string[] = []
    for await (const { key } of store.list()) left.push(key)
    equal(left, keys.slice(0, 10).sort(), 'what is left is listed in key order')
  })
})

const HOUR = 60 * 60 * 1000

// O18
/**
 * Contract stamp: docs/spec/sweep.md#durable-form
 * Contract stamp: docs/adr/013-lease-and-defaults.md#decision
 */
const windowDelay = row({
  name: 'no_candidate_is_executed_before_its_window_has_passed',
  statement:
    'A staged entry waits the longer of the delay at staging and the delay now; no sweep executes what it staged itself.',
  stamps: ['docs/spec/sweep.md#durable-form', 'docs/adr/013-lease-and-defaults.md#decision'],
  invariant: 'INV-4',
  needs: ['durable', 'age'],
  cases: ['O18'],
  async run(factory) {
    const store = await factory.open({ windowDelayMs: HOUR })
    const oracle = oracleOf(factory, store)
    store.protect(sourceOver([]))
    const { length } = await putReleased(store, bytesOf(500, 18))
    expectCounts(await store.sweep(), { candidatesStaged: 1 }, 'the entry is staged')
    expectCounts(await store.sweep(), { alreadyStaged: 1 }, 'a sweep at once finds it waiting')
    await oracle.age?.(HOUR - 60_000)
    expectCounts(await store.sweep(), { alreadyStaged: 1 }, 'a minute before its time it waits')
    await store.configure({ windowDelayMs: 0 })
    expectCounts(await store.sweep(), { alreadyStaged: 1 }, 'a shorter delay does not shorten the wait that was staged')
    await store.configure({ windowDelayMs: 2 * HOUR })
    await oracle.age?.(60_000)
    expectCounts(await store.sweep(), { alreadyStaged: 1 }, 'a longer delay lengthens it')
    await store.configure({ windowDelayMs: 0 })
    expectCounts(await store.sweep(), { deleted: 1, bytesDeleted: length }, 'after its window it goes')
    await putReleased(store, bytesOf(500, 19))
    expectCounts(await store.sweep(), { candidatesStaged: 1 }, 'even without a delay no sweep executes what it staged')
    await store.close()
    await factory.teardown()
  }
})

// O05
/**
 * Contract stamp: docs/spec/sweep.md#durable-form
 * Contract stamp: docs/spec/engine-contract.md#catalog
 */
const latePin = row({
  name: 'a_pin_that_arrives_while_a_batch_is_removed_keeps_its_entry',
  statement:
    'Removal looks at each candidate when it goes: a pin taken between two batches of one executing sweep holds.',
  stamps: ['docs/spec/sweep.md#durable-form', 'docs/spec/engine-contract.md#catalog'],
  invariant: 'INV-11',
  needs: ['durable'],
  cases: ['O05'],
  async run(factory) {
    const held = gate()
    let removals = 0
    const gone = new Set<string>()
    const wrap = (definition: Parameters<typeof tapped>[0]) =>
      tapped(definition, {
        catalog: inner => ({
          async remove(...args: Parameters<typeof inner.remove>) {
            removals += 1
            if (removals === 2) await held.pass()
            for (const { key } of args[0]) gone.add(key)
            return await inner.remove(...args)
          }
        })
      })
    const store = await factory.open({ wrap })
    store.protect(sourceOver([]))
    const keys = (await Promise.all(Array.from({ length: 250 }, (_, at) => putReleased(store, bytesOf(50, at))))).map(
      ({ key }) => key
    )
    expectCounts(await store.sweep(), { candidatesStaged: 250 }, 'all are staged')
    const sweep = store.sweep()
    await held.reached
    const late = present(
      keys.find(key => !gone.has(key)),
      'a candidate that is still there'
    )
    const pin = present(await store.pin(late), 'the pin is granted')
    held.open()
    const counts = { live: 1, deleted: 249, cancelledByArbitration: 1, bytesDeleted: 249 * 50 }
    expectCounts(await sweep, counts, 'the sweep spares the one that was pinned in between')
    holds(pin.held, 'the pin is held')
    equal((await present(await store.get(late), 'its entry is there').bytes()).length, 50, 'its entry is whole')
    await store.close()
    await factory.teardown()
  }
})

export const durableSweepRows = [
  twoSweeps,
  putInWindow,
  reputCancels,
  contended,
  listThroughSchedule,
  windowDelay,
  latePin
]
