/** INV-11 and INV-12: pins are counted, end once, and never undo a newer one. */
import { GcRefused, PinRequired } from '../codes.js'
import { bytesOf, tierLengths } from '../content.js'
import { equal, holds, present, refuses } from '../expect.js'
import { oracleOf } from '../factory.js'
import { over, row } from '../row.js'
import { collect, expectCounts, expectNoResidue, putReleased, releasesArrived, sourceOver } from '../sweeping.js'
import { gate, watch } from '../tap.js'

// O07
/**
 * Contract stamp: docs/spec/store-api.md#receipts
 * Contract stamp: docs/spec/sweep.md#pins
 */
const releasedTwice = row({
  name: 'a_pin_released_twice_or_after_close_is_released_once',
  statement:
    'release() may be called again, at the same time or after close: every call resolves and only the first counts.',
  stamps: ['docs/spec/store-api.md#receipts', 'docs/spec/sweep.md#pins'],
  invariant: 'INV-10',
  cases: ['O07'],
  async run(factory) {
    const store = await factory.open()
    const bytes = bytesOf(100, 7)
    const first = await store.put(bytes)
    const second = await store.put(bytes)
    await Promise.all([first.release(), first.release(), first.release()])
    await first[Symbol.asyncDispose]()
    equal(store.pins(), [{ key: first.key, count: 1 }], 'releasing one receipt many times leaves the other alone')
    await refuses(() => store.delete(first.key), GcRefused, 'the second receipt still protects')
    await second.release()
    equal(store.pins(), [], 'nothing is held any more')
    equal(await store.delete(first.key), true, 'the entry can go')
    const third = await store.put(bytes)
    const pin = present(await store.pin(third.key), 'a pin')
    holds(pin.held, 'a pin that was just taken is held')
    await pin.release()
    equal(pin.held, false, 'a released pin is not held')
    await store.close()
    await third.release()
    await pin.release()
    equal(third.pin?.held ?? false, false, 'close has released it')
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/sweep.md#pins
 * Contract stamp: docs/spec/store-api.md#receipts
 */
const counted = row({
  name: 'pins_of_one_key_are_counted_and_the_last_release_frees_it',
  statement: 'Several receipts and pins of one key protect it until the last of them is released.',
  stamps: ['docs/spec/sweep.md#pins', 'docs/spec/store-api.md#receipts'],
  invariant: 'INV-11',
  run: over(async (store, factory) => {
    store.protect(sourceOver([]))
    for (const length of tierLengths(factory)) {
      const bytes = bytesOf(length, 21)
      const receipts = [await store.put(bytes), await store.put(bytes)]
      const key = present(receipts[0], 'a receipt').key
      const holders = [...receipts, present(await store.pin(key), 'a pin'), present(await store.pin(key), 'a pin')]
      for (const [at, holder] of holders.entries()) {
        equal(store.pins(), [{ key, count: holders.length - at }], 'the store counts its pins')
        equal(
          await collect(store),
          { staged: 0, deleted: 0, cancelled: 0, bytesDeleted: 0 },
          'a pinned entry is never staged'
        )
        await holder.release()
      }
      equal((await collect(store)).deleted, 1, 'after the last release it is swept')
      await expectNoResidue(store, 'no pin is left')
    }
  })
})

/**
 * Contract stamp: docs/spec/sweep.md#pins
 * Contract stamp: docs/spec/engine-contract.md#catalog
 */
const lateRelease = row({
  name: 'a_late_release_after_a_reput_leaves_the_newer_pin_alone',
  statement: 'A release that reaches the medium after the same content was put again ends only the pin it took.',
  stamps: ['docs/spec/sweep.md#pins', 'docs/spec/engine-contract.md#catalog'],
  invariant: 'INV-11',
  cases: ['O07'],
  async run(factory) {
    let held: ReturnType<typeof gate> | undefined
    const store = await factory.open({
      wrap: watch({ before: async operation => (operation === 'release' ? await held?.pass() : undefined) })
    })
    const bytes = bytesOf(100, 70)
    const first = await store.put(bytes)
    const closed = gate()
    held = closed
    await first.release()
    // The release is on its way to the medium and has not arrived: by itself, within its bound, or with the next transaction.
    await closed.reached
    const second = await store.put(bytes)
    held = undefined
    closed.open()
    const why = await store.why(second.key)
    equal(why.pins.length, 1, 'the newer pin is on the medium')
    // The late release has run by the time the store has begun a delete of its own.
    await refuses(() => store.delete(second.key), GcRefused, 'the newer pin protects after the late release')
    equal((await store.why(second.key)).pins.length, 1, 'the newer pin is still on the medium')
    await second.release()
    equal(await store.delete(second.key), true, 'and is gone with its own release')
    await store.close()
    await factory.teardown()
  }
})

// O06
/**
 * Contract stamp: docs/spec/sweep.md#maintenance
 * Contract stamp: docs/spec/sweep.md#pins
 */
const reapedPins = row({
  name: 'housekeeping_reaps_expired_pins_and_only_those',
  statement: 'A maintenance run or sweep ends pins past their expiry, and leaves those that are held.',
  stamps: ['docs/spec/sweep.md#maintenance', 'docs/spec/sweep.md#pins'],
  invariant: 'INV-12',
  needs: ['second', 'age', 'durable'],
  cases: ['O06'],
  async run(factory) {
    const holder = await factory.open()
    const sweeper = present(await factory.second?.(holder), 'a second instance')
    const oracle = oracleOf(factory, holder)
    sweeper.protect(sourceOver([]))
    const [kept, expired] = [await holder.put(bytesOf(60, 1)), await holder.put(bytesOf(60, 2))]
    equal((await oracle.counts()).pins, 2, 'both pins are rows')
    await oracle.expirePins?.(expired.key)
    const report = await sweeper.sweep()
    equal(report.pinsReaped, 1, 'exactly the expired pin is reaped')
    equal((await oracle.counts()).pins, 1, 'the held one stays')
    expectCounts(await sweeper.sweep(), { live: 1, deleted: 1, bytesDeleted: 60 }, 'only the abandoned entry goes')
    equal(await sweeper.has(kept.key), true, 'the held entry stays')
    // O07: a release of what has expired and is gone resolves, and touches nobody.
    const again = await sweeper.put(bytesOf(60, 2))
    await expired.release()
    await releasesArrived(holder)
    await refuses(() => sweeper.delete(again.key), GcRefused, 'a late release of an expired pin ends no other')
    await sweeper.close()
    await holder.close()
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/sweep.md#pins
 * Contract stamp: docs/spec/store-api.md#receipts
 */
const withoutPin = row({
  name: 'a_put_without_a_pin_needs_a_window_to_rely_on',
  statement: '`pin: false` is refused where no window delay protects the entry, before anything is stored.',
  stamps: ['docs/spec/sweep.md#pins', 'docs/spec/store-api.md#receipts'],
  invariant: 'INV-8',
  run: over(async store => {
    await refuses(() => store.put(bytesOf(10), { pin: false }), PinRequired, 'an unprotected put')
    equal((await store.usage()).entries, 0, 'nothing was stored')
  })
})

// O10, without a pin
/**
 * Contract stamp: docs/spec/sweep.md#pins
 * Contract stamp: docs/spec/sweep.md#durable-form
 */
const windowProtects = row({
  name: 'a_put_without_a_pin_is_protected_by_a_full_window',
  statement:
    'An unpinned put, also one that finds its entry staged, is followed by a full window delay before the entry may go.',
  stamps: ['docs/spec/sweep.md#pins', 'docs/spec/sweep.md#durable-form'],
  invariant: 'INV-11',
  needs: ['durable', 'age'],
  cases: ['O10'],
  async run(factory) {
    const delay = 60_000
    const store = await factory.open({ windowDelayMs: delay })
    const oracle = oracleOf(factory, store)
    store.protect(sourceOver([]))
    const bytes = bytesOf(80, 10)
    const receipt = await store.put(bytes, { pin: false })
    equal(receipt.pin, undefined, 'the put took no pin')
    equal((await oracle.counts()).pins, 0, 'no pin is on the medium')
    expectCounts(await store.sweep(), { candidatesStaged: 1 }, 'the entry is staged')
    await oracle.age?.(delay)
    await store.put(bytes, { pin: false })
    expectCounts(await store.sweep(), { cancelledByArbitration: 1, candidatesStaged: 1 }, 'the put restarted the wait')
    expectCounts(await store.sweep(), { alreadyStaged: 1 }, 'which has to pass in full')
    await oracle.age?.(delay)
    expectCounts(await store.sweep(), { deleted: 1, bytesDeleted: 80 }, 'and then the entry goes')
    await store.close()
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/sweep.md#report
 * Contract stamp: docs/spec/store-api.md#removing
 */
const whyTells = row({
  name: 'why_tells_what_protects_an_entry',
  statement: '`why` names the pins, the sources and the window row of a key, and what a sweep would do now.',
  stamps: ['docs/spec/sweep.md#report', 'docs/spec/store-api.md#removing'],
  invariant: 'INV-7',
  run: over(async store => {
    const receipt = await store.put(bytesOf(30, 3))
    const { key } = receipt
    const registration = store.protect(sourceOver([], 'nothing'))
    const pinned = await store.why(key)
    equal([pinned.verdict, pinned.pins.length, pinned.pins[0]?.own], ['pinned', 1, true], 'a pinned entry')
    await receipt.release()
    await releasesArrived(store)
    const live = store.protect(sourceOver([key], 'album'))
    const referenced = await store.why(key)
    equal([referenced.verdict, referenced.liveBy], ['live', ['album']], 'a referenced entry')
    live.remove()
    const free = store.form === 'inline' ? 'would-be-deleted' : 'would-be-staged'
    equal((await store.why(key)).verdict, free, 'an entry nobody protects')
    registration.remove()
    equal((await store.why(key)).verdict, 'no-sources', 'without a source nobody can say')
    equal((await putReleased(store, bytesOf(30, 3))).created, false, 'asking has changed nothing')
  })
})

export const pinRows = [releasedTwice, counted, lateRelease, reapedPins, withoutPin, windowProtects, whyTells]
