/** Sweeps and deletes of one instance beside the pins, puts and leases of others. */
import type { BlobKey, Store } from '@alkblobs/core'
import { GcRefused } from '../codes.js'
import { bytesOf, tierLengths } from '../content.js'
import { equal, holds, present, refuses, sameBytes } from '../expect.js'
import { oracleOf, type StoreFactory } from '../factory.js'
import { end } from '../fleets.js'
import { row } from '../row.js'
import { collect, expectAborted, expectCounts, putReleased, releasesArrived, sourceOver } from '../sweeping.js'
import { gate, type Operation, watch } from '../tap.js'

async function fleet(factory: StoreFactory, count: number, tuning: Parameters<StoreFactory['open']>[0] = {}) {
  const first = await factory.open(tuning)
  const others: Store[] = []
  while (others.length < count - 1) others.push(present(await factory.second?.(first, {}), 'another instance'))
  return [first, ...others] as [Store, Store, ...Store[]]
}

/**
 * Contract stamp: docs/spec/fleet.md#arbitration
 */
const exactCounts = row({
  name: 'two_instance_exact_counts_instance_a_pins_instance_b_sweeps',
  statement:
    'What one instance pins, puts and references, the sweep of another counts as live, and exactly the rest goes.',
  stamps: ['docs/spec/fleet.md#arbitration'],
  invariant: 'INV-4',
  needs: ['fleet', 'second'],
  async run(factory) {
    const [one, other] = await fleet(factory, 2)
    const lengths = tierLengths(factory)
    const holders: { release(): Promise<void> }[] = []
    const live: BlobKey[] = []
    let bytes = 0
    for (const length of lengths) {
      for (let nth = 0; nth < 2; nth += 1) holders.push(await one.put(bytesOf(length, 10 + nth)))
      holders.push(present(await one.pin((await putReleased(other, bytesOf(length, 20))).key), 'a pin'))
      live.push((await putReleased(one, bytesOf(length, 30))).key)
      for (let nth = 0; nth < 4; nth += 1) {
        await putReleased(nth % 2 === 0 ? one : other, bytesOf(length, 40 + nth))
        bytes += length
      }
    }
    await releasesArrived(one)
    other.protect(sourceOver(live))
    const tiers = lengths.length
    expectCounts(await other.sweep(), { live: 4 * tiers, candidatesStaged: 4 * tiers }, 'the staging sweep')
    expectCounts(
      await other.sweep(),
      { live: 4 * tiers, deleted: 4 * tiers, bytesDeleted: bytes },
      'the executing sweep'
    )
    for (const holder of holders) await holder.release()
    await releasesArrived(one)
    expectCounts(await other.sweep(), { live: tiers, candidatesStaged: 3 * tiers }, 'what was let go is staged')
    equal((await other.sweep()).deleted, 3 * tiers, 'and goes')
    await end(factory, other, one)
  }
})

// O17
/**
 * Contract stamp: docs/spec/fleet.md#arbitration
 * Contract stamp: docs/spec/sweep.md#lease
 */
const oneLease = row({
  name: 'two_instances_sweep_concurrently_one_leases_the_other_aborts_as_data',
  statement:
    'Of sweeps and maintenance runs of several instances at once exactly one has the right to remove; the others say so in their report, and do nothing.',
  stamps: ['docs/spec/fleet.md#arbitration', 'docs/spec/sweep.md#lease'],
  invariant: 'INV-4',
  needs: ['fleet', 'second'],
  cases: ['O17'],
  async run(factory) {
    const [one, other, third] = (await fleet(factory, 3)) as [Store, Store, Store]
    const held = gate()
    let asked = 0
    one.protect({ name: 'slow', live: () => (asked++ === 0 ? held.pass().then(() => []) : []) })
    for (const store of [other, third]) store.protect(sourceOver([]))
    const { length } = await putReleased(one, bytesOf(70, 1))
    await releasesArrived(one)
    const holder = one.sweep()
    await held.reached
    for (const store of [other, third, one]) {
      expectAborted(await store.sweep(), 'SweeperLock', 'a sweep beside another')
      equal((await store.maintain()).aborted, 'SweeperLock', 'maintenance beside a sweep')
    }
    held.open()
    expectCounts(await holder, { candidatesStaged: 1 }, 'the one that had the lease did its work')
    const all = await Promise.all([one, other, third].map(store => store.sweep()))
    const done = all.filter(({ aborted }) => aborted === undefined)
    holds(done.length > 0, 'of sweeps that begin together one runs')
    equal(
      all.filter(({ aborted }) => aborted !== undefined && aborted !== 'SweeperLock'),
      [],
      'and the rest step back'
    )
    equal(
      all.reduce((sum, { deleted }) => sum + deleted, 0),
      1,
      'the entry is deleted once'
    )
    equal(
      all.reduce((sum, { bytesDeleted }) => sum + bytesDeleted, 0),
      length,
      'and its bytes are counted once'
    )
    await end(factory, third, other, one)
  }
})

/**
 * Contract stamp: docs/spec/fleet.md#arbitration
 * Contract stamp: docs/spec/sweep.md#direct-delete
 */
const foreignPin = row({
  name: 'a_foreign_owners_unexpired_pin_row_refuses_the_direct_delete_until_expiry',
  statement:
    'A delete folds the rows of all owners into one answer: it is refused until the last of them is released or has expired.',
  stamps: ['docs/spec/fleet.md#arbitration', 'docs/spec/sweep.md#direct-delete'],
  invariant: 'INV-4',
  needs: ['fleet', 'second', 'medium', 'age'],
  async run(factory) {
    const [one, other, third] = (await fleet(factory, 3)) as [Store, Store, Store]
    const oracle = oracleOf(factory, one)
    for (const length of tierLengths(factory)) {
      const { key } = await putReleased(one, bytesOf(length, 3))
      const holders = [present(await other.pin(key), 'a pin'), present(await third.pin(key), 'a pin')]
      const refused = async (what: string) => {
        const error = await refuses(() => one.delete(key), GcRefused, what)
        equal((error as { reason?: unknown }).reason, 'pinned', `${what}: the reason`)
      }
      await refused('a delete under two foreign rows')
      const [first, second] = (await one.why(key)).pins.map(({ owner }) => owner) as [string, string]
      await oracle.expirePins?.(key, first)
      await refused('a delete under the one that has not expired')
      await oracle.expirePins?.(key, second)
      equal(await one.delete(key), true, 'after the last expiry it is deleted')
      for (const store of [other, third]) await releasesArrived(store)
      equal(
        holders.map(pin => [pin.held, pin.signal.aborted]),
        [
          [false, true],
          [false, true]
        ],
        'the holders learn of it'
      )
      equal(await other.pin(key), undefined, 'and there is nothing left to pin')
    }
    await end(factory, third, other, one)
  }
})

// O10, O11
/**
 * Contract stamp: docs/spec/fleet.md#arbitration
 * Contract stamp: docs/spec/sweep.md#durable-form
 */
const putInWindow = row({
  name: 'a_put_landing_during_the_fleet_window_survives_the_executing_sweep',
  statement:
    'A put of one instance cancels what another has staged, whether it still holds its pin or not, before the executing sweep and in the middle of it.',
  stamps: ['docs/spec/fleet.md#arbitration', 'docs/spec/sweep.md#durable-form'],
  invariant: 'INV-11',
  needs: ['fleet', 'second'],
  cases: ['O10', 'O11'],
  async run(factory) {
    let halted: { readonly operation: Operation; readonly gate: ReturnType<typeof gate> } | undefined
    const [sweeper, writer] = await fleet(factory, 2, {
      wrap: watch({
        before: async operation => (operation === halted?.operation ? await halted.gate.pass() : undefined)
      })
    })
    sweeper.protect(sourceOver([]))
    for (const length of tierLengths(factory)) {
      for (const isHeld of [true, false]) {
        for (const operation of [undefined, 'maintain', 'remove'] as const) {
          const [kept, lost] = [bytesOf(length, 1), bytesOf(length, 2)]
          await putReleased(writer, kept)
          await putReleased(writer, lost)
          await releasesArrived(writer)
          equal((await sweeper.sweep()).candidatesStaged, 2, 'both are staged')
          const closed = gate()
          if (operation !== undefined) halted = { operation, gate: closed }
          const early = operation === undefined ? await writer.put(kept) : undefined
          const sweep = sweeper.sweep()
          if (operation !== undefined) await closed.reached
          const receipt = early ?? (await writer.put(kept))
          if (!isHeld) await receipt.release()
          if (!isHeld) await releasesArrived(writer)
          halted = undefined
          closed.open()
          const { deleted, cancelledByArbitration } = await sweep
          const what = `put ${operation === undefined ? 'before the sweep' : `at ${operation}`}, ${isHeld ? 'held' : 'released'}`
          equal([deleted, cancelledByArbitration], [1, 1], what)
          equal(receipt.created, false, `${what}: it finds the entry`)
          sameBytes(await present(await writer.get(receipt.key), what).bytes(), kept, `${what}: the entry is whole`)
          await receipt.release()
          await releasesArrived(writer)
          await collect(sweeper)
          equal((await writer.usage()).entries, 0, `${what}: in the end it goes`)
        }
      }
    }
    await end(factory, writer, sweeper)
  }
})

/**
 * Contract stamp: docs/spec/fleet.md#arbitration
 * Contract stamp: docs/spec/sweep.md#liveness-sources
 */
const table = row({
  name: 'an_embedder_liveness_table_protects_fleet_wide_and_is_never_owned',
  statement:
    'Rows of one table of the application protect against the sweeps and deletes of every instance that has registered it, and the table stays as it is through all of them.',
  stamps: ['docs/spec/fleet.md#arbitration', 'docs/spec/sweep.md#liveness-sources'],
  invariant: 'INV-4',
  needs: ['fleet', 'second', 'medium', 'tables'],
  async run(factory) {
    const stores = await fleet(factory, 2)
    const [one, other] = stores
    const keys: BlobKey[] = []
    for (const length of tierLengths(factory))
      for (const store of stores) keys.push((await putReleased(store, bytesOf(length, 50 + keys.length))).key)
    for (const store of stores) await releasesArrived(store)
    const application = present(await oracleOf(factory, one).application?.('bytes'), 'a table of an application')
    await application.reference(keys)
    const before = await application.look()
    for (const store of stores) await store.protect(application.source)
    for (const store of [one, other, one]) expectCounts(await store.sweep(), { live: keys.length }, 'all are live')
    for (const store of stores)
      for (const key of keys) await refuses(() => store.delete(key), GcRefused, 'a delete of what the table names')
    equal(await application.look(), before, 'the table is as it was')
    await application.forget(keys)
    equal((await one.sweep()).candidatesStaged, keys.length, 'what it forgot is staged by one')
    await application.reference(keys.slice(0, 1))
    const look = await application.look()
    expectCounts(
      { ...(await other.sweep()), bytesDeleted: 0 },
      { live: 1, deleted: keys.length - 1, cancelledByArbitration: 1 },
      'and executed by another, but for what is named again'
    )
    equal(await application.look(), look, 'the table is as it was')
    await end(factory, other, one)
  }
})

/**
 * Contract stamp: docs/spec/fleet.md#pauses
 * Contract stamp: docs/spec/sweep.md#lease
 */
const lostLease = row({
  name: 'a_sweep_that_lost_its_lease_stops_before_its_next_removal',
  statement:
    'A sweep whose sessions were ended removes nothing any more and counts exactly what it had done; another instance takes over at once and does the rest.',
  stamps: ['docs/spec/fleet.md#pauses', 'docs/spec/sweep.md#lease'],
  invariant: 'INV-4',
  needs: ['fleet', 'second', 'medium'],
  async run(factory) {
    const held = gate()
    let removals = 0
    const [one, other] = await fleet(factory, 2, {
      wrap: watch({
        before: async operation => (operation === 'remove' && ++removals === 2 ? await held.pass() : undefined)
      })
    })
    for (const store of [one, other]) store.protect(sourceOver([]))
    const total = 250
    await Promise.all(Array.from({ length: total }, (_, at) => putReleased(one, bytesOf(40, at))))
    await releasesArrived(one)
    expectCounts(await one.sweep(), { candidatesStaged: total }, 'all are staged')
    const sweep = one.sweep()
    await held.reached
    await oracleOf(factory, one).endSessions?.()
    const rest = await other.sweep()
    equal(rest.aborted, undefined, 'another instance takes over at once')
    held.open()
    const { aborted, deleted, cancelledByArbitration, failed } = await sweep
    equal(
      [aborted, cancelledByArbitration, failed.length],
      ['LeaseLost', 0, 0],
      'the first says that it lost the right'
    )
    equal(deleted + rest.deleted, total, 'each entry is counted by who removed it')
    holds(deleted > 0 && rest.deleted > 0, 'both had a part')
    equal((await other.usage()).entries, 0, 'and all are gone')
    equal((await one.sweep()).aborted, undefined, 'the first sweeps again, on new sessions')
    await end(factory, other, one)
  }
})

export const fleetSweepRows = [exactCounts, oneLease, foreignPin, putInWindow, table, lostLease]
