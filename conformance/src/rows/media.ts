/** Whose medium it is, and media that are folders: claims, settings, links, disappearing folders. */
import { watch } from '../tap.js'
import { PoolRefused } from '../codes.js'
import { bytesOf, tierLengths } from '../content.js'
import { equal, holds, present, refuses, sameBytes, settled } from '../expect.js'
import { oracleOf } from '../factory.js'
import { over, row } from '../row.js'
import { iterate } from '../sources.js'
import { expectEntries, putReleased, sourceOver } from '../sweeping.js'

const refusedAs = (reason: string) => (error: unknown) =>
  (error as { code?: unknown }).code === PoolRefused && (error as { reason?: unknown }).reason === reason

const foreignBodies = row({
  name: 'a_body_store_claimed_by_another_pool_is_refused',
  statement: 'A pool does not use the large medium of another: it refuses at open or at its first put, and nothing of either is touched.',
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
    equal((await oracleOf(factory, owner).counts()).bodies, 1, 'the owner\'s medium is as it was')
    sameBytes(await present(await owner.get(key), 'the entry is there').bytes(), bytes, 'the owner reads its entry')
    equal((await owner.put(bytesOf(large, 3))).created, true, 'and goes on putting')
    await owner.close()
    await factory.teardown()
  }
})

const settings = row({
  name: 'a_pool_of_another_derivation_or_window_is_refused_at_open',
  statement: 'What a pool recorded when it was made is checked at open: another derivation or window delay is refused, with what was found.',
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
    await refuses(() => opened({ derivation: 'sha256', windowDelayMs: 60_000 }), refusedAs('derivation'), 'another derivation')
    await refuses(() => opened({ windowDelayMs: 61_000 }), refusedAs('settings'), 'another window delay')
    store = present(await factory.reopen?.(store, { windowDelayMs: 60_000 }), 'the pool reopened as it was made')
    equal(await store.has(key), true, 'and with its own settings it is served')
    await store.configure({ windowDelayMs: 61_000 })
    await store.close()
    store = present(await factory.reopen?.(store, { windowDelayMs: 61_000 }), 'the pool reopened as it was set')
    equal(await store.has(key), true, 'a changed setting is the pool\'s from then on')
    await store.close()
    await factory.teardown()
  }
})

const reopened = row({
  name: 'a_reopened_pool_has_everything_that_was_acknowledged',
  statement: 'Entries, staged candidates and their counts are there after a close and an open; what the closed store pinned is not.',
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
      sameBytes(await present(await store.get(key), 'it is there').bytes(), present(contents[at], 'content'), 'it is whole')
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
const interrupted = row({
  name: 'an_interrupted_collection_is_finished_by_the_next',
  statement: 'A sweep stopped between two batches leaves every entry whole or gone, the lease free, and the rest to the next sweep; counts add up.',
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

// O40
const links = row({
  name: 'links_that_lead_out_of_the_root_are_not_followed',
  statement: 'A folder that was replaced by a link out of the root is refused with a typed error; nothing is written behind it.',
  stamps: ['docs/spec/engine-contract.md#body-store'],
  invariant: 'INV-8',
  needs: ['dual-tier', 'root', 'medium'],
  cases: ['O40'],
  run: over(async (store, factory) => {
    const oracle = oracleOf(factory, store)
    const large = tierLengths(factory).at(-1) ?? 1
    await store.put(bytesOf(large, 1))
    const outside = present(await oracle.linkOut?.(), 'links')
    const typed = (error: unknown) => (error as { code?: unknown }).code === 'ERR_BLOB_ENGINE'
    await refuses(() => store.put(bytesOf(large, 2)), typed, 'a put whose folder is a link')
    equal(await outside(), 0, 'nothing was written outside the root')
    equal((await oracle.counts()).stages, 0, 'nothing is left of the put')
  })
})

// O44
const disappearing = row({
  name: 'a_folder_that_disappears_under_a_put_costs_nothing',
  statement: 'While somebody removes empty folders under the root, every put resolves and every entry is whole.',
  stamps: ['docs/spec/engine-contract.md#body-store'],
  invariant: 'INV-11',
  needs: ['dual-tier', 'root', 'medium'],
  cases: ['O44'],
  run: over(async (store, factory) => {
    const oracle = oracleOf(factory, store)
    const large = tierLengths(factory).at(-1) ?? 1
    let running = true
    let rounds = 0
    const cleaning = (async () => {
      while (running) {
        await oracle.removeEmptyFolders?.()
        rounds += 1
        await new Promise<void>(done => setImmediate(done))
      }
    })()
    const keys: string[] = []
    for (let at = 0; at < 300; at += 30) {
      const batch = Array.from({ length: 30 }, (_, nth) => store.put(iterate([bytesOf(large, at + nth)])))
      keys.push(...(await Promise.all(batch)).map(({ key }) => key))
    }
    running = false
    await cleaning
    holds(rounds > 1, 'folders were removed while puts ran', `${rounds} rounds`)
    for (const [at, key] of keys.entries()) {
      sameBytes(await present(await store.get(key), 'it is there').bytes(), bytesOf(large, at), 'it is whole')
    }
  })
})

// O36
const tooLargeThreshold = row({
  name: 'a_threshold_above_what_the_catalog_can_hold_is_refused_at_open',
  statement: 'What one inline body cannot hold is refused when the store is opened, before any row is written.',
  stamps: ['docs/spec/store-api.md#modes-and-thresholds', 'docs/spec/engine-contract.md#catalog'],
  invariant: 'INV-8',
  cases: ['O36'],
  async run(factory) {
    const refusal = (error: unknown) => ['ERR_BLOB_INVALID_ARGUMENT', PoolRefused].includes((error as { code: string }).code)
    await refuses(() => factory.open({ threshold: Number.MAX_SAFE_INTEGER }), refusal, 'a threshold no catalog can hold')
    for (const threshold of [-1, 0.5, Number.NaN, '1' as unknown as number]) {
      await refuses(() => factory.open({ threshold }), refusal, `a threshold of ${String(threshold)}`)
    }
    await factory.teardown()
  }
})

// O35, with two instances in one process
const twoWriters = row({
  name: 'two_instances_write_one_medium_without_a_conflict_reaching_the_caller',
  statement: 'Two instances that put, pin, release and delete at the same time wait for each other; every call succeeds and the effects add up.',
  stamps: ['docs/spec/engine-contract.md#catalog'],
  invariant: 'INV-7',
  needs: ['second'],
  cases: ['O35', 'O27'],
  async run(factory) {
    const store = await factory.open()
    const other = present(await factory.second?.(store), 'a second instance')
    const lengths = tierLengths(factory)
    const work = async (instance: typeof store, seed: number) => {
      for (let time = 0; time < 60; time += 1) {
        // Every second content is shared between all writers.
        const bytes = bytesOf(lengths[time % lengths.length] ?? 1, time % 2 === 0 ? time : seed * 1000 + time)
        const receipt = await instance.put(bytes)
        await present(await instance.pin(receipt.key), 'a pin on what was just put').release()
        await receipt.release()
        if (time % 2 === 1) equal(await instance.delete(receipt.key), true, 'a delete of what is its own')
      }
    }
    await Promise.all([store, store, store, store, other, other, other, other].map((instance, seed) => work(instance, seed + 1)))
    await expectEntries(store, 30, 'the shared contents are there once each')
    await expectEntries(other, 30, 'for both instances')
    await other.close()
    await store.close()
    await factory.teardown()
  }
})

export const mediaRows = [foreignBodies, settings, reopened, interrupted, links, disappearing, tooLargeThreshold, twoWriters]
