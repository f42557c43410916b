/** Pins of several instances: one row for each owner, moved by its owner's renewals, ended by the server's clock and never begun again. */
import type { BlobKey, Store } from '@alkblobs/core'
import { GcRefused } from '../codes.js'
import { bytesOf, tierLengths } from '../content.js'
import { becomes, codeOf, equal, holds, present, refuses, sameBytes } from '../expect.js'
import { type MediumOracle, oracleOf, type StoredPin, type StoreFactory } from '../factory.js'
import { row } from '../row.js'
import { collect, expectCounts, expectNoResidue, putReleased, releasesArrived, sourceOver } from '../sweeping.js'
import { gate, watch } from '../tap.js'

/** Two instances of one fleet, and a look at what they share. */
async function pair(factory: StoreFactory, tuning: Parameters<StoreFactory['open']>[0] = {}) {
  const one = await factory.open(tuning)
  const other = present(await factory.second?.(one, {}), 'a second instance')
  return { one, other, oracle: oracleOf(factory, one) }
}

async function end(factory: StoreFactory, ...stores: readonly Store[]): Promise<void> {
  for (const store of stores) await store.close()
  await factory.teardown()
}

const rowsOf = async (oracle: MediumOracle, key: BlobKey): Promise<readonly StoredPin[]> =>
  present(await oracle.pinRows?.(key), 'the pin rows')

/** The rows of an instance are those that its own explanation calls its own. */
async function ownRow(oracle: MediumOracle, store: Store, key: BlobKey): Promise<StoredPin> {
  const own = present(
    (await store.why(key)).pins.find(pin => pin.own),
    'a pin of its own'
  )
  return present(
    (await rowsOf(oracle, key)).find(({ owner }) => owner === own.owner),
    'its row'
  )
}

// O08
/**
 * Contract stamp: docs/spec/fleet.md#joint-commit
 */
const jointCommit = row({
  name: 'the_joint_entry_and_pin_tx_commits_both_or_neither',
  statement:
    'Whatever medium holds the bytes, another instance never sees an entry without its pin: when the publication has committed both are there, and where either half fails neither is.',
  stamps: ['docs/spec/fleet.md#joint-commit'],
  invariant: 'INV-11',
  needs: ['fleet', 'second', 'medium', 'refuse'],
  cases: ['O08'],
  async run(factory) {
    const committed = gate()
    let isHalting = false
    const { one, other, oracle } = await pair(factory, {
      wrap: watch({
        after: async operation => (isHalting && operation === 'publish' ? await committed.pass() : undefined)
      })
    })
    const lengths = tierLengths(factory)
    isHalting = true
    const puts = lengths.map(length => one.put(bytesOf(length, 1)))
    await committed.reached
    const seen: BlobKey[] = []
    for await (const { key } of other.list()) seen.push(key)
    holds(seen.length > 0, 'the other instance sees what was committed')
    for (const key of seen) {
      equal(
        (await rowsOf(oracle, key)).map(({ isExpired }) => isExpired),
        [false],
        'with the pin of its writer'
      )
      await refuses(() => other.delete(key), GcRefused, 'which protects before the put has returned')
    }
    isHalting = false
    committed.open()
    for (const receipt of await Promise.all(puts)) await receipt.release()
    await releasesArrived(one)
    const entries = (await other.usage()).entries
    for (const length of lengths) {
      await oracle.refuse?.(length)
      await refuses(
        () => one.put(bytesOf(length, 2)),
        error => codeOf(error) !== undefined,
        'a put whose entry fails'
      )
      await oracle.refuse?.(undefined)
      await oracle.refusePins?.(true)
      await refuses(
        () => one.put(bytesOf(length, 2)),
        error => codeOf(error) !== undefined,
        'a put whose pin fails'
      )
      await oracle.refusePins?.(false)
    }
    const { pins, entries: after } = await other.usage()
    equal({ pins, entries: after }, { pins: 0, entries }, 'neither half of what failed is there')
    for (const length of lengths) await putReleased(one, bytesOf(length, 2))
    await expectNoResidue(one, 'what failed left nothing')
    await end(factory, other, one)
  }
})

/**
 * Contract stamp: docs/spec/fleet.md#pins
 */
const composes = row({
  name: 'a_dedup_reput_upsert_renews_and_a_fleet_reput_composes_a_second_row',
  statement:
    "A re-put by the same instance moves its one row on, with a higher generation; one by another instance adds a row of its own, and each release ends its own instance's alone.",
  stamps: ['docs/spec/fleet.md#pins'],
  invariant: 'INV-11',
  needs: ['fleet', 'second', 'medium', 'age'],
  async run(factory) {
    const { one, other, oracle } = await pair(factory)
    for (const length of tierLengths(factory)) {
      const bytes = bytesOf(length, 6)
      const first = await one.put(bytes)
      const { key } = first
      await oracle.age?.(30_000)
      const before = await ownRow(oracle, one, key)
      const again = await one.put(bytes)
      const after = await ownRow(oracle, one, key)
      equal((await rowsOf(oracle, key)).length, 1, 'a re-put of the same instance shares the row')
      holds(after.generation > before.generation, 'its generation rises')
      holds(after.expiresAtMs >= before.expiresAtMs + 30_000, 'and its expiry moves on')
      const foreign = await other.put(bytes)
      equal(foreign.created, false, 'the other instance finds the entry')
      const rows = await rowsOf(oracle, key)
      equal([rows.length, new Set(rows.map(({ owner }) => owner)).size], [2, 2], 'and has a row of its own')
      equal((await ownRow(oracle, one, key)).generation, after.generation, 'the first is as it was')
      await first.release()
      await releasesArrived(one)
      equal((await rowsOf(oracle, key)).length, 2, 'the first instance still holds its second receipt')
      await again.release()
      await releasesArrived(one)
      equal((await rowsOf(oracle, key)).length, 1, 'the last release ends the row of its own instance')
      await refuses(() => one.delete(key), GcRefused, 'the other instance still protects')
      await foreign.release()
      await releasesArrived(other)
      equal((await rowsOf(oracle, key)).length, 0, 'until it lets go')
      equal(await one.delete(key), true, 'then it can go')
    }
    await end(factory, other, one)
  }
})

/** Long enough for a machine that is busy, short enough that its third can be waited for. */
const SHORT_TTL_MS = 3_000

/**
 * Contract stamp: docs/spec/fleet.md#pins
 */
const renewal = row({
  name: 'the_pin_guards_ttl_third_renewal_moves_the_rows_expiry',
  statement:
    'While a pin is held its row is renewed by itself, first after a third of its life, all pins of the instance in one call; a released one is renewed no more.',
  stamps: ['docs/spec/fleet.md#pins'],
  invariant: 'INV-11',
  needs: ['fleet', 'medium'],
  async run(factory) {
    let renewals = 0
    const store = await factory.open({
      pinTtlMs: SHORT_TTL_MS,
      wrap: watch({ after: operation => (operation === 'renew' ? ++renewals : undefined) })
    })
    const oracle = oracleOf(factory, store)
    const begun = performance.now()
    const receipts = [await store.put(bytesOf(100, 1)), await store.put(bytesOf(100, 2))]
    const keys = receipts.map(({ key }) => key)
    const expiries = async () =>
      (await Promise.all(keys.map(key => rowsOf(oracle, key)))).map(rows => rows[0]?.expiresAtMs ?? 0)
    const before = await expiries()
    equal(renewals, 0, 'nothing is renewed before its time')
    await becomes(async () => renewals > 0, 'the renewal comes by itself')
    holds(performance.now() - begun >= SHORT_TTL_MS / 3 - 1, 'not before a third of the life of a pin')
    equal(renewals, 1, 'all pins are renewed in one call')
    const after = await expiries()
    holds(
      after.every((expiry, at) => expiry > (before[at] ?? 0)),
      'the renewal moved every row'
    )
    equal(
      receipts.map(({ pin }) => pin?.held),
      [true, true],
      'and the pins are held'
    )
    for (const receipt of receipts) await receipt.release()
    await releasesArrived(store)
    equal((await oracle.counts()).pins, 0, 'a released pin has no row')
    await end(factory, store)
  }
})

// O28
/**
 * Contract stamp: docs/spec/fleet.md#expiry
 */
const neverRevived = row({
  name: 'an_expired_row_is_never_renewed_back_to_life',
  statement:
    'A renewal that finds its row expired leaves it as it is: the pin is lost, its signal fires, and other pins of the instance live on.',
  stamps: ['docs/spec/fleet.md#expiry'],
  invariant: 'INV-11',
  needs: ['fleet', 'second', 'medium', 'age'],
  cases: ['O28'],
  async run(factory) {
    const { one, other, oracle } = await pair(factory)
    other.protect(sourceOver([]))
    for (const length of tierLengths(factory)) {
      const [lost, kept] = [await one.put(bytesOf(length, 8)), await one.put(bytesOf(length, 9))]
      let told: unknown
      lost.pin?.signal.addEventListener('abort', () => {
        told = lost.pin?.signal.reason
      })
      await oracle.expirePins?.(lost.key)
      // A delete renews what its instance holds before it looks.
      await releasesArrived(one)
      equal([lost.pin?.held, lost.pin?.signal.aborted], [false, true], 'the pin is lost')
      holds(told instanceof Error, 'its holder was told why')
      equal(
        (await rowsOf(oracle, lost.key)).every(({ isExpired }) => isExpired),
        true,
        'the row was not moved'
      )
      equal(kept.pin?.held, true, 'another pin of the instance is held')
      equal(one.pins(), [{ key: kept.key, count: 1 }], 'and counted alone')
      await other.sweep()
      expectCounts(
        await other.sweep(),
        { live: 1, deleted: 1, bytesDeleted: length },
        'the other instance takes what was lost'
      )
      await kept.release()
      await releasesArrived(one)
      equal((await collect(other)).deleted, 1, 'and later the rest')
    }
    await end(factory, other, one)
  }
})

// O28, O30
/**
 * Contract stamp: docs/spec/fleet.md#expiry
 * Contract stamp: docs/spec/fleet.md#pauses
 */
const pausedHolder = row({
  name: 'a_paused_holder_loses_protection_at_expiry_and_a_reput_recovers',
  statement:
    'A holder whose renewals stand still loses its entry to a sweep of others once its row has expired, learns of it at its next renewal, restores nothing, and has everything again after a re-put.',
  stamps: ['docs/spec/fleet.md#expiry', 'docs/spec/fleet.md#pauses'],
  invariant: 'INV-11',
  needs: ['fleet', 'second', 'medium', 'age'],
  cases: ['O28', 'O30'],
  async run(factory) {
    let paused: ReturnType<typeof gate> | undefined
    const { one, other, oracle } = await pair(factory, {
      wrap: watch({ before: async operation => (operation === 'renew' ? await paused?.pass() : undefined) })
    })
    other.protect(sourceOver([]))
    for (const length of tierLengths(factory)) {
      const bytes = bytesOf(length, 10)
      const receipt = await one.put(bytes)
      const { key } = receipt
      const closed = gate()
      paused = closed
      const renewing = releasesArrived(one)
      await closed.reached
      await other.sweep()
      equal((await other.sweep()).deleted, 0, 'until its row expires it protects')
      await oracle.expirePins?.(key)
      equal((await collect(other)).deleted, 1, 'then it protects no more')
      paused = undefined
      closed.open()
      await renewing
      equal([receipt.pin?.held, receipt.pin?.signal.aborted], [false, true], 'the holder learns of it when it goes on')
      equal([await one.has(key), (await rowsOf(oracle, key)).length], [false, 0], 'and has brought nothing back')
      const again = await one.put(bytes)
      equal([again.created, again.pin?.held], [true, true], 'a re-put recovers')
      equal((await collect(other)).deleted, 0, 'and protects')
      sameBytes(await present(await other.get(key), 'the entry').bytes(), bytes, 'the entry is whole')
      await receipt.release()
      await releasesArrived(one)
      equal((await rowsOf(oracle, key)).length, 1, 'a late release of what was lost ends nothing that came after')
      await again.release()
      await releasesArrived(one)
      equal((await collect(other)).deleted, 1, 'and in the end it goes')
    }
    await end(factory, other, one)
  }
})

// O06
/**
 * Contract stamp: docs/spec/fleet.md#expiry
 */
const reaps = row({
  name: 'the_maintenance_step_reaps_exactly_the_expired_rows',
  statement:
    'Maintenance of any instance ends the rows that have expired, whoever owned them, and no other; a sweep does so before it executes what is overdue.',
  stamps: ['docs/spec/fleet.md#expiry'],
  invariant: 'INV-12',
  needs: ['fleet', 'second', 'medium', 'age', 'transactions'],
  cases: ['O06'],
  async run(factory) {
    const { one, other, oracle } = await pair(factory)
    other.protect(sourceOver([]))
    const receipts = await Promise.all([1, 2, 3, 4].map(seed => one.put(bytesOf(90, seed))))
    const foreign = await Promise.all([1, 2].map(seed => other.put(bytesOf(90, seed))))
    const [both, first, second, third] = receipts.map(({ key }) => key) as [BlobKey, BlobKey, BlobKey, BlobKey]
    const mine = await ownRow(oracle, one, both)
    await oracle.expirePins?.(both, mine.owner)
    await oracle.expirePins?.(second)
    equal((await other.maintain()).pinsReaped, 2, 'exactly the expired rows are reaped')
    const left = await Promise.all([both, first, second, third].map(key => rowsOf(oracle, key)))
    equal(
      left.map(({ length }) => length),
      [1, 2, 0, 1],
      'those of others, and of other keys, stay'
    )
    equal(
      left.flat().some(({ owner, isExpired }) => isExpired || (owner === mine.owner && left[0]?.length === 0)),
      false,
      'unexpired'
    )
    equal((await other.maintain()).pinsReaped, 0, 'and nothing is left to reap')
    expectCounts(await other.sweep(), { live: 3, candidatesStaged: 1 }, 'what lost its last row is staged')
    // Somebody pins what is staged, as an instance that was cut off before it could tell the window would have.
    const open = present(await oracle.pinInTransaction?.(second), 'a pin')
    await open.commit()
    await oracle.expirePins?.(second)
    const report = await other.sweep()
    expectCounts(report, { live: 3, deleted: 1, bytesDeleted: 90 }, 'the overdue entry goes in the very sweep')
    equal(report.pinsReaped, 1, 'that reaps its last row')
    for (const holder of [...receipts, ...foreign]) await holder.release()
    await end(factory, other, one)
  }
})

export const fleetPinRows = [jointCommit, composes, renewal, neverRevived, pausedHolder, reaps]
