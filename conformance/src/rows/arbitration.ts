/** INV-11: removal against put, pin and delete, in every order that matters. */
import { GcRefused } from '../codes.js'
import { bytesOf, tierLengths } from '../content.js'
import { equal, holds, present, refuses, sameBytes, settled } from '../expect.js'
import type { StoreFactory } from '../factory.js'
import { over, row } from '../row.js'
import { collect, expectEntries, putReleased, releasesArrived, sourceOver } from '../sweeping.js'
import { type Gate, gate, type Operation, watch } from '../tap.js'

const reasonOf = (error: unknown) => (error as { reason?: unknown }).reason
const refusedAs = (reason: string) => (error: unknown) =>
  (error as { code?: unknown }).code === GcRefused && reasonOf(error) === reason

/** A store in which the next call of one operation waits, before or after its effect. */
async function haltable(factory: StoreFactory) {
  let halt: { operation: Operation; side: 'before' | 'after'; gate: Gate } | undefined
  const visit = (side: 'before' | 'after') => async (operation: Operation) => {
    if (halt === undefined || halt.operation !== operation || halt.side !== side) return
    const { gate: closed } = halt
    halt = undefined
    await closed.pass()
  }
  const store = await factory.open({ wrap: watch({ before: visit('before'), after: visit('after') }) })
  const haltNext = (operation: Operation, side: 'before' | 'after') => {
    halt = { operation, side, gate: gate() }
    return halt.gate
  }
  return { store, haltNext }
}

// O14
/**
 * Contract stamp: docs/spec/store-api.md#removing
 * Contract stamp: docs/spec/sweep.md#direct-delete
 */
const doubleDelete = row({
  name: 'deleting_twice_or_the_absent_is_the_same_answer_everywhere',
  statement:
    'The one delete that removes the entry answers true; a second, a concurrent one and one of the absent answer false.',
  stamps: ['docs/spec/store-api.md#removing', 'docs/spec/sweep.md#direct-delete'],
  invariant: 'INV-11',
  cases: ['O14'],
  run: over(async (store, factory) => {
    equal(await store.delete(`blake3:${'00'.repeat(32)}`), false, 'a delete of what never was')
    for (const length of tierLengths(factory)) {
      const { key } = await putReleased(store, bytesOf(length, 14))
      equal(await store.delete(key), true, 'the first delete')
      equal(await store.delete(key), false, 'the second delete')
      await putReleased(store, bytesOf(length, 14))
      const ends = await Promise.all(Array.from({ length: 8 }, () => store.delete(key)))
      equal(ends.filter(Boolean).length, 1, 'of concurrent deletes exactly one removed the entry')
      equal(await store.get(key), undefined, 'and the entry is gone')
    }
    await expectEntries(store, 0, 'nothing is left')
  })
})

/**
 * Contract stamp: docs/spec/store-api.md#removing
 * Contract stamp: docs/spec/sweep.md#direct-delete
 */
const deleteRefuses = row({
  name: 'a_delete_refuses_what_is_pinned_or_live',
  statement:
    'A delete of a pinned or referenced entry is refused with the reason and removes nothing; a failing source refuses too.',
  stamps: ['docs/spec/store-api.md#removing', 'docs/spec/sweep.md#direct-delete'],
  invariant: 'INV-4',
  run: over(async (store, factory) => {
    for (const length of tierLengths(factory)) {
      const receipt = await store.put(bytesOf(length, 1))
      const { key } = receipt
      await refuses(() => store.delete(key), refusedAs('pinned'), 'a delete under a receipt')
      await receipt.release()
      const pin = present(await store.pin(key), 'a pin')
      await refuses(() => store.delete(key), refusedAs('pinned'), 'a delete under a pin')
      await pin.release()
      for (const source of [sourceOver([key]), { name: 'asked', isLive: async () => [key] }]) {
        const registration = store.protect(source)
        await refuses(() => store.delete(key), refusedAs('live'), 'a delete of what a source references')
        registration.remove()
      }
      const failing = store.protect({ name: 'down', live: () => Promise.reject(new Error('down')) })
      await refuses(() => store.delete(key), refusedAs('source-failed'), 'a delete beside a source that cannot answer')
      failing.remove()
      sameBytes(
        await present(await store.get(key), 'the entry is there').bytes(),
        bytesOf(length, 1),
        'nothing was removed'
      )
      const outcomes = await store.deleteMany([key, `blake3:${'00'.repeat(32)}`])
      equal([outcomes.size, outcomes.get(key)], [2, 'deleted'], 'deleteMany answers for each key')
    }
  })
})

// O11
/**
 * Contract stamp: docs/spec/sweep.md#direct-delete
 * Contract stamp: docs/spec/sweep.md#invariants
 * Contract stamp: docs/spec/engine-contract.md#publish
 */
const deleteRacingPut = row({
  name: 'a_delete_racing_a_put_never_takes_an_acknowledged_entry',
  statement:
    'Whatever point of a delete a put of the same bytes falls on, and whatever point of a put a delete falls on, a put that resolved has its entry.',
  stamps: ['docs/spec/sweep.md#direct-delete', 'docs/spec/sweep.md#invariants', 'docs/spec/engine-contract.md#publish'],
  invariant: 'INV-11',
  cases: ['O11'],
  async run(factory) {
    const { store, haltNext } = await haltable(factory)
    for (const length of tierLengths(factory)) {
      for (const [operation, side] of [
        ['mark', 'before'],
        ['mark', 'after'],
        ['remove', 'before'],
        ['remove', 'after']
      ] as const) {
        const bytes = bytesOf(length, 11)
        const { key } = await putReleased(store, bytes)
        await releasesArrived(store)
        const halted = haltNext(operation, side)
        const deletion = settled(store.delete(key))
        await halted.reached
        const receipt = await store.put(bytes)
        halted.open()
        const end = await deletion
        if ('error' in end)
          holds(refusedAs('pinned')(end.error), 'a delete that loses is refused as pinned', String(end.error))
        const what = `put ${side} ${operation} of a delete`
        sameBytes(
          await present(await store.get(receipt.key), `${what} has its entry`).bytes(),
          bytes,
          `${what} is whole`
        )
        await receipt.release()
        equal(await store.delete(key), true, `${what}: one entry is left to delete`)
      }
      for (const [operation, side] of [
        ['find', 'before'],
        ['publish', 'before'],
        ['publish', 'after']
      ] as const) {
        const bytes = bytesOf(length, 12)
        const { key } = await putReleased(store, bytes)
        await releasesArrived(store)
        const halted = haltNext(operation, side)
        const put = store.put(bytes)
        const arrived = await Promise.race([halted.reached.then(() => true), put.then(() => false)])
        const end = arrived ? await settled(store.delete(key)) : undefined
        halted.open()
        const receipt = await put
        const what = `delete ${side} ${operation} of a put`
        const raced = end !== undefined && 'error' in end ? end.error : undefined
        if (raced !== undefined)
          holds(refusedAs('pinned')(raced), 'a delete that loses is refused as pinned', String(raced))
        sameBytes(await present(await store.get(receipt.key), `${what}: the put has its entry`).bytes(), bytes, what)
        await receipt.release()
        equal(await store.delete(key), true, `${what}: one entry is left to delete`)
      }
    }
    await store.close()
    await factory.teardown()
  }
})

// O11, against an executing sweep
/**
 * Contract stamp: docs/spec/sweep.md#invariants
 * Contract stamp: docs/spec/engine-contract.md#publish
 */
const sweepRacingPut = row({
  name: 'a_put_racing_a_removing_sweep_keeps_its_entry',
  statement:
    'A put that lands just before or after a sweep removes its content, or the reverse, ends with the entry in place.',
  stamps: ['docs/spec/sweep.md#invariants', 'docs/spec/engine-contract.md#publish'],
  invariant: 'INV-11',
  cases: ['O11'],
  async run(factory) {
    const { store, haltNext } = await haltable(factory)
    store.protect(sourceOver([]))
    for (const length of tierLengths(factory)) {
      for (const side of ['before', 'after'] as const) {
        const bytes = bytesOf(length, 13)
        await putReleased(store, bytes)
        if (store.form === 'durable') await store.sweep()
        const halted = haltNext('remove', side)
        const sweep = store.sweep()
        await halted.reached
        const receipt = await store.put(bytes)
        halted.open()
        const report = await sweep
        equal(report.deleted, side === 'before' ? 0 : 1, `a put ${side} the removal`)
        equal(receipt.created, side === 'after', `a put ${side} the removal tells whether it made the entry`)
        const blob = present(await store.get(receipt.key), `a put ${side} the removal has its entry`)
        sameBytes(await blob.bytes(), bytes, `a put ${side} the removal is whole`)
        await receipt.release()
        await store.delete(receipt.key)
        await collect(store)
      }
    }
    await store.close()
    await factory.teardown()
  }
})

// O12
/**
 * Contract stamp: docs/spec/sweep.md#direct-delete
 * Contract stamp: docs/spec/engine-contract.md#catalog
 */
const pinDuringDelete = row({
  name: 'a_pin_taken_while_a_delete_decides_is_seen_by_it',
  statement:
    "A pin or put that lands between a delete's look and its removal makes the delete refuse, even when released again.",
  stamps: ['docs/spec/sweep.md#direct-delete', 'docs/spec/engine-contract.md#catalog'],
  invariant: 'INV-11',
  cases: ['O12'],
  async run(factory) {
    const { store, haltNext } = await haltable(factory)
    for (const length of tierLengths(factory)) {
      for (const released of [false, true]) {
        const bytes = bytesOf(length, 15)
        const { key } = await putReleased(store, bytes)
        await releasesArrived(store)
        const halted = haltNext('remove', 'before')
        const deletion = settled(store.delete(key))
        await halted.reached
        const pin = present(await store.pin(key), 'the pin is granted')
        if (released) await pin.release()
        halted.open()
        const end = await deletion
        holds('error' in end && refusedAs('pinned')(end.error), 'the delete is refused as pinned', JSON.stringify(end))
        sameBytes(
          await present(await store.get(key), 'the pinned entry is there').bytes(),
          bytes,
          'the pinned entry is whole'
        )
        await pin.release()
        equal(await store.delete(key), true, 'and is deleted once nobody holds it')
      }
    }
    await store.close()
    await factory.teardown()
  }
})

export const arbitrationRows = [doubleDelete, deleteRefuses, deleteRacingPut, sweepRacingPut, pinDuringDelete]
