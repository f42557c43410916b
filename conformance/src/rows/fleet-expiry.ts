/** Pins that have expired by the server's clock: lost to their holder, reaped by anybody, and never begun again. */
import type { BlobKey } from '@alkblobs/core'
import { bytesOf, tierLengths } from '../content.js'
import { equal, holds, present, sameBytes } from '../expect.js'
import { end, ownRow, pair, rowsOf } from '../fleets.js'
import { row } from '../row.js'
import { collect, expectCounts, releasesArrived, sourceOver } from '../sweeping.js'
import { gate, watch } from '../tap.js'

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

export const fleetExpiryRows = [neverRevived, pausedHolder, reaps]
