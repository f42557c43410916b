/** Whose medium it is, and media that are folders: claims, settings, links, disappearing folders. */

import { EngineFailed, InvalidArgument, PoolRefused } from '../codes.js'
import { bytesOf, tierLengths } from '../content.js'
import { codeOf, equal, present, refuses, sameBytes, settled } from '../expect.js'
import { oracleOf } from '../factory.js'
import { over, row } from '../row.js'
import { expectEntries, putReleased, sourceOver } from '../sweeping.js'
import { watch } from '../tap.js'

const refusedAs = (reason: string) => (error: unknown) =>
  (error as { code?: unknown }).code === PoolRefused && (error as { reason?: unknown }).reason === reason

/**
 * Contract stamp: docs/spec/engine-contract.md#body-store
 * Contract stamp: docs/spec/store-api.md#opening
 */
const foreignBodies = row({
  name: 'a_body_store_claimed_by_another_pool_is_refused',
  statement:
    'A pool does not use the large medium of another: it refuses at open or at its first put, and nothing of either is touched.',
  stamps: ['docs/spec/engine-contract.md#body-store', 'docs/spec/store-api.md#opening'],
  invariant: 'INV-8',
  needs: ['dual-tier', 'foreign', 'medium'],
  async run(factory) {
    const owner = await factory.open()
    const large = tierLengths(factory).at(-1) ?? 1
    const bytes = bytesOf(large, 1)
    const { key } = await owner.put(bytes)
    const held = (error: unknown) => refusedAs('media')(error) || refusedAs('held')(error)
    const attempt = async () => {
      const foreign = present(await factory.foreign?.(owner), 'another pool')
      const end = await settled(foreign.put(bytesOf(large, 2)))
      await foreign.close()
      if ('error' in end) throw end.error
      return end.value
    }
    await refuses(attempt, held, 'a put into the large medium of another pool')
    equal((await oracleOf(factory, owner).counts()).bodies, 1, "the owner's medium is as it was")
    sameBytes(await present(await owner.get(key), 'the entry is there').bytes(), bytes, 'the owner reads its entry')
    equal((await owner.put(bytesOf(large, 3))).created, true, 'and goes on putting')
    await owner.close()
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/store-api.md#opening
 * Contract stamp: docs/spec/sweep.md#durable-form
 * Contract stamp: docs/adr/002-derivation.md#decision
 */
const settings = row({
  name: 'a_pool_of_another_derivation_or_window_is_refused_at_open',
  statement:
    'What a pool recorded when it was made is checked at open: another derivation or window delay is refused, with what was found.',
  stamps: ['docs/spec/store-api.md#opening', 'docs/spec/sweep.md#durable-form', 'docs/adr/002-derivation.md#decision'],
  invariant: 'INV-8',
  needs: ['reopen', 'durable'],
  async run(factory) {
    let store = await factory.open({ windowDelayMs: 60_000 })
    const { key } = await store.put('kept')
    await store.close()
    const opened = async (tuning: Parameters<typeof factory.open>[0]) => {
      const again = present(await factory.reopen?.(store, tuning), 'the pool reopened')
      const end = await settled(again.has(key))
      await again.close()
      if ('error' in end) throw end.error
    }
    await refuses(
      () => opened({ derivation: 'sha256', windowDelayMs: 60_000 }),
      refusedAs('derivation'),
      'another derivation'
    )
    await refuses(() => opened({ windowDelayMs: 61_000 }), refusedAs('settings'), 'another window delay')
    store = present(await factory.reopen?.(store, { windowDelayMs: 60_000 }), 'the pool reopened as it was made')
    equal(await store.has(key), true, 'and with its own settings it is served')
    await store.configure({ windowDelayMs: 61_000 })
    await store.close()
    store = present(await factory.reopen?.(store, { windowDelayMs: 61_000 }), 'the pool reopened as it was set')
    equal(await store.has(key), true, "a changed setting is the pool's from then on")
    await store.close()
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/store-api.md#opening
 * Contract stamp: docs/spec/sweep.md#durable-form
 */
const reopened = row({
  name: 'a_reopened_pool_has_everything_that_was_acknowledged',
  statement:
    'Entries, staged candidates and their counts are there after a close and an open; what the closed store pinned is not.',
  stamps: ['docs/spec/store-api.md#opening', 'docs/spec/sweep.md#durable-form'],
  invariant: 'INV-11',
  needs: ['reopen', 'durable'],
  cases: ['O15'],
  async run(factory) {
    let store = await factory.open()
    const contents = tierLengths(factory).flatMap(length => [1, 2, 3].map(seed => bytesOf(length, seed)))
    const keys: string[] = []
    for (const bytes of contents) keys.push((await store.put(bytes)).key)
    store = present(await factory.reopen?.(store), 'the pool reopened')
    for (const [at, key] of keys.entries()) {
      sameBytes(
        await present(await store.get(key), 'it is there').bytes(),
        present(contents[at], 'content'),
        'it is whole'
      )
    }
    equal((await store.usage()).pins, 0, 'close released the pins')
    store.protect(sourceOver([]))
    equal((await store.sweep()).candidatesStaged, keys.length, 'everything is staged')
    store = present(await factory.reopen?.(store), 'the pool reopened')
    store.protect(sourceOver([]))
    equal((await store.sweep()).deleted, keys.length, 'a later instance executes what an earlier one staged')
    await expectEntries(store, 0, 'the pool is empty')
    await store.close()
    await factory.teardown()
  }
})

// O15, as far as one process goes: a sweep is stopped in the middle of its execution
/**
 * Contract stamp: docs/spec/sweep.md#crash-points
 * Contract stamp: docs/spec/sweep.md#report
 */
const interrupted = row({
  name: 'an_interrupted_collection_is_finished_by_the_next',
  statement:
    'A sweep stopped between two batches leaves every entry whole or gone, the lease free, and the rest to the next sweep; counts add up.',
  stamps: ['docs/spec/sweep.md#crash-points', 'docs/spec/sweep.md#report'],
  invariant: 'INV-4',
  cases: ['O15'],
  async run(factory) {
    for (const stopAt of [1, 2, 3]) {
      const controller = new AbortController()
      let removals = 0
      const before = (operation: string) => {
        if (operation !== 'remove') return
        removals += 1
        if (removals === stopAt) controller.abort(new Error('stopped'))
      }
      const store = await factory.open({ wrap: watch({ before }) })
      store.protect(sourceOver([]))
      const total = 230
      const keys: string[] = []
      for (let at = 0; at < total; at += 1) keys.push((await putReleased(store, bytesOf(40, at))).key)
      if (store.form === 'durable') await store.sweep()
      const report = await store.sweep({ signal: controller.signal })
      equal(report.aborted, 'Cancelled', 'the sweep says that it was stopped')
      let left = 0
      for (const [at, key] of keys.entries()) {
        const blob = await store.get(key)
        if (blob === undefined) continue
        left += 1
        sameBytes(await blob.bytes(), bytesOf(40, at), 'what is left is whole')
      }
      equal(report.deleted, total - left, 'the report counts what is gone')
      let deleted = report.deleted
      for (let time = 0; time < 2; time += 1) deleted += (await store.sweep()).deleted
      equal(deleted, total, 'the next sweeps finish the rest, and the counts add up')
      await expectEntries(store, 0, 'nothing is left')
      await store.close()
    }
    await factory.teardown()
  }
})

// O36
/**
 * Contract stamp: docs/spec/store-api.md#modes-and-thresholds
 * Contract stamp: docs/spec/engine-contract.md#catalog
 */
const tooLargeThreshold = row({
  name: 'a_threshold_above_what_the_catalog_can_hold_is_refused_at_open',
  statement: 'What one inline body cannot hold is refused when the store is opened, before any row is written.',
  stamps: ['docs/spec/store-api.md#modes-and-thresholds', 'docs/spec/engine-contract.md#catalog'],
  invariant: 'INV-8',
  cases: ['O36'],
  async run(factory) {
    const refusal = (error: unknown) => [InvalidArgument, PoolRefused].includes((error as { code: string }).code)
    await refuses(
      () => factory.open({ threshold: Number.MAX_SAFE_INTEGER }),
      refusal,
      'a threshold no catalog can hold'
    )
    for (const threshold of [-1, 0.5, Number.NaN, '1' as unknown as number]) {
      await refuses(() => factory.open({ threshold }), refusal, `a threshold of ${String(threshold)}`)
    }
    await factory.teardown()
  }
})

// O35, with two instances in one process
/**
 * Contract stamp: docs/spec/engine-contract.md#catalog
 */
const twoWriters = row({
  name: 'two_instances_write_one_medium_without_a_conflict_reaching_the_caller',
  statement:
    'Two instances that put, pin, release and delete at the same time wait for each other; every call succeeds and the effects add up.',
  stamps: ['docs/spec/engine-contract.md#catalog'],
  invariant: 'INV-7',
  needs: ['second'],
  cases: ['O35'],
  async run(factory) {
    const store = await factory.open()
    const other = present(await factory.second?.(store), 'a second instance')
    const lengths = tierLengths(factory)
    const work = async (instance: typeof store, seed: number) => {
      for (let time = 0; time < 30; time += 1) {
        // Every second content is shared between all writers.
        const bytes = bytesOf(lengths[time % lengths.length] ?? 1, time % 2 === 0 ? time : seed * 1000 + time)
        const receipt = await instance.put(bytes)
        await present(await instance.pin(receipt.key), 'a pin on what was just put').release()
        await receipt.release()
        if (time % 2 === 1) equal(await instance.delete(receipt.key), true, 'a delete of what is its own')
      }
    }
    await Promise.all(
      [store, store, store, store, other, other, other, other].map((instance, seed) => work(instance, seed + 1))
    )
    await expectEntries(store, 15, 'the shared contents are there once each')
    await expectEntries(other, 15, 'for both instances')
    await other.close()
    await store.close()
    await factory.teardown()
  }
})

// O37
/**
 * Contract stamp: docs/spec/engine-contract.md#publish
 * Contract stamp: docs/spec/engine-contract.md#catalog
 */
const refusedWrite = row({
  name: 'a_write_that_the_medium_refuses_fails_alone',
  statement:
    'When the medium refuses one entry and undoes the transaction, that put alone rejects, with its cause; puts beside it and after it succeed.',
  stamps: ['docs/spec/engine-contract.md#publish', 'docs/spec/engine-contract.md#catalog'],
  invariant: 'INV-3',
  needs: ['medium', 'refuse'],
  cases: ['O37'],
  run: over(async (store, factory) => {
    const oracle = oracleOf(factory, store)
    store.protect(sourceOver([]))
    // Kept to the end: what nobody can reach any more is let go.
    const made = await store.put('the pool is made')
    for (const length of tierLengths(factory)) {
      await oracle.refuse?.(length)
      const typed = (error: unknown) => codeOf(error) === EngineFailed && (error as Error).cause !== undefined
      const refused = refuses(() => store.put(bytesOf(length, 37)), typed, 'a put that the medium refuses')
      const beside = Array.from({ length: 10 }, (_, at) => store.put(bytesOf(50 + at, 37)))
      await refused
      for (const receipt of await Promise.all(beside)) {
        equal(await store.has(receipt.key), true, 'a put beside the refused one')
        await receipt.release()
        equal(await store.delete(receipt.key), true, 'a delete after the refused one')
      }
      equal((await store.sweep()).aborted, undefined, 'a sweep after the refused one')
      await expectEntries(store, 1, 'nothing of the refused put remains')
      equal((await oracle.counts()).stages, 0, 'not even a stage')
      await oracle.refuse?.(undefined)
      const receipt = await store.put(bytesOf(length, 37))
      equal(receipt.created, true, 'the same put once the medium accepts it')
      await receipt.release()
      equal(await store.delete(receipt.key), true, 'and it is an entry like any other')
    }
    await made.release()
  })
})

export const mediaRows = [refusedWrite, foreignBodies, settings, reopened, interrupted, tooLargeThreshold, twoWriters]
