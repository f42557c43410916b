/** Pins of several instances: one row for each owner, written with the entry, moved by its owner's renewals. */
import type { BlobKey } from '@alkblobs/core'
import { GcRefused } from '../codes.js'
import { bytesOf, tierLengths } from '../content.js'
import { becomes, codeOf, equal, holds, refuses } from '../expect.js'
import { oracleOf } from '../factory.js'
import { end, ownRow, pair, rowsOf } from '../fleets.js'
import { row } from '../row.js'
import { expectNoResidue, putReleased, releasesArrived } from '../sweeping.js'
import { gate, watch } from '../tap.js'

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

export const fleetPinRows = [jointCommit, composes, renewal]
