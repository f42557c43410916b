/** Where bytes lie, seen on the medium: routing by length, falling through between tiers, and nothing left over. */
import { bytesOf, tierLengths } from '../content.js'
import { equal, holds, present, refuses, sameBytes } from '../expect.js'
import { PRODUCERS, throwing } from '../failing.js'
import { type MediumCounts, oracleOf, type StoreFactory } from '../factory.js'
import { over, row } from '../row.js'
import { iterate, PUT_PATHS } from '../sources.js'
import { collect, expectCollected, putReleased, sourceOver } from '../sweeping.js'
import { gate, tapped } from '../tap.js'
import type { Store } from '@alkblobs/core'

const placed = ({ inlineEntries, bodies }: MediumCounts) => ({ inlineEntries, bodies })
const leftovers = ({ stages, trash, window, pins }: MediumCounts) => ({ stages, trash, window, pins })
const NOTHING = { stages: 0, trash: 0, window: 0, pins: 0 }

const routing = row({
  name: 'routing_is_a_pure_function_of_length_across_put_paths_and_re_puts',
  statement: 'Length alone decides the tier: on every put path, in any order, and however often the content is put again.',
  stamps: ['docs/spec/store-api.md#modes-and-thresholds', 'docs/adr/003-put-paths-and-dispatch.md#decision'],
  invariant: 'INV-7',
  needs: ['dual-tier', 'medium'],
  run: over(async (store, factory) => {
    const oracle = oracleOf(factory, store)
    store.protect(sourceOver([]))
    for (const [tier, length] of tierLengths(factory).entries()) {
      const expected = tier === 0 ? { inlineEntries: 1, bodies: 0 } : { inlineEntries: 0, bodies: 1 }
      for (const first of PUT_PATHS) {
        const made = await first.put(store, bytesOf(length, 4))
        equal(placed(await oracle.counts()), expected, `${length} bytes as ${first.name}`)
        equal(present(await store.stat(made.key), 'a record').tier, tier === 0 ? 'kv' : 'large', 'stat tells the tier')
        for (const again of PUT_PATHS) await (await again.put(store, bytesOf(length, 4))).release()
        equal(placed(await oracle.counts()), expected, `${length} bytes as ${first.name}, put again by every path`)
        await made.release()
        await expectCollected(store, 1, length, 'one entry is collected')
        equal(placed(await oracle.counts()), { inlineEntries: 0, bodies: 0 }, 'the medium is empty again')
      }
    }
  })
})

async function expectBoundary(store: Store, factory: StoreFactory): Promise<void> {
  const oracle = oracleOf(factory, store)
  const { threshold } = store
  const before = await oracle.counts()
  for (const [nth, path] of PUT_PATHS.entries()) {
    for (const length of [threshold - 1, threshold]) await path.put(store, bytesOf(length, nth))
    await path.put(store, bytesOf(threshold + 1, nth))
    const counts = await oracle.counts()
    equal(counts.inlineEntries - before.inlineEntries, 2 * (nth + 1), `up to ${threshold} bytes as ${path.name} lie in the kv tier`)
    equal(counts.bodies - before.bodies, nth + 1, `above ${threshold} bytes as ${path.name} lie in the large tier`)
  }
}

const boundary = row({
  name: 'threshold_boundary_lengths_route_deterministically',
  statement: 'One below and at the threshold go to the kv tier, one above to the large tier: for a tuned and for the shipped threshold.',
  stamps: ['docs/spec/store-api.md#modes-and-thresholds', 'docs/adr/003-put-paths-and-dispatch.md#decision'],
  invariant: 'INV-7',
  needs: ['dual-tier', 'medium'],
  async run(factory) {
    for (const threshold of [factory.threshold ?? 4096, 128 * 1024, 16]) {
      const store = await factory.open({ threshold })
      equal(store.threshold, threshold, 'the store tells its threshold')
      await expectBoundary(store, factory)
      await store.close()
    }
    await factory.teardown()
  }
})

const fallThrough = row({
  name: 'kv_tier_misses_fall_through_to_the_large_tier_per_op',
  statement: 'get, stat, has, pin, ranges and delete find an entry in whichever tier it lies, and miss in both with one answer.',
  stamps: ['docs/spec/store-api.md#reading', 'docs/adr/006-read-path.md#decision', 'docs/adr/011-modes.md#decision'],
  invariant: 'INV-7',
  needs: ['dual-tier', 'medium'],
  run: over(async (store, factory) => {
    const oracle = oracleOf(factory, store)
    for (const length of tierLengths(factory)) {
      const bytes = bytesOf(length, 6)
      const { key } = await putReleased(store, bytes)
      sameBytes(await present(await store.get(key), 'get').bytes(), bytes, 'get')
      sameBytes(await present(await store.get(key), 'get').slice(3, 60).bytes(), bytes.slice(3, 60), 'a range')
      equal(present(await store.stat(key), 'stat').length, length, 'stat')
      equal(await store.has(key), true, 'has')
      await present(await store.pin(key), 'pin').release()
      equal(await store.delete(key), true, 'delete')
      equal([await store.get(key), await store.stat(key), await store.has(key), await store.pin(key)], [undefined, undefined, false, undefined], 'a miss in both tiers')
    }
    equal(placed(await oracle.counts()), { inlineEntries: 0, bodies: 0 }, 'nothing is left on the medium')
  })
})

const thresholdChange = row({
  name: 'after_a_threshold_change_every_entry_is_found_in_either_tier',
  statement: 'A pool reopened with another threshold serves what lies in the other tier, and a re-put finds it there: still one entry.',
  stamps: ['docs/spec/store-api.md#modes-and-thresholds', 'docs/spec/store-api.md#putting'],
  invariant: 'INV-2',
  needs: ['dual-tier', 'medium', 'reopen'],
  async run(factory) {
    const [small = 1, large = 1] = tierLengths(factory)
    let store = await factory.open()
    const keys = [(await store.put(bytesOf(small, 8))).key, (await store.put(bytesOf(large, 8))).key]
    for (const threshold of [small - 1, large + 1]) {
      store = present(await factory.reopen?.(store, { threshold }), 'the pool reopened')
      const before = placed(await oracleOf(factory, store).counts())
      for (const [at, length] of [small, large].entries()) {
        const bytes = bytesOf(length, 8)
        const key = present(keys[at], 'a key')
        sameBytes(await present(await store.get(key), 'it is found').bytes(), bytes, 'it is read')
        for (const path of PUT_PATHS) {
          const again = await path.put(store, bytes)
          equal([again.key, again.created], [key, false], `a re-put as ${path.name} finds it in its tier`)
          await again.release()
        }
      }
      equal(placed(await oracleOf(factory, store).counts()), before, 'nothing moved, and nothing is there twice')
    }
    store.protect(sourceOver([]))
    equal((await collect(store)).deleted, 2, 'there were two entries')
    await store.close()
    await factory.teardown()
  }
})

const exactOnDisk = row({
  name: 'stage_hygiene_exact_counts_on_disk_over_both_put_paths',
  statement: 'On the medium: one stage while a put runs, none after a failure, a discard or a lost race, one body after a success.',
  stamps: ['docs/spec/engine-contract.md#stages', 'docs/spec/engine-contract.md#body-store', 'docs/adr/010-engine-contract.md#decision'],
  invariant: 'INV-3',
  needs: ['dual-tier', 'medium'],
  async run(factory) {
    const store = await factory.open()
    const oracle = oracleOf(factory, store)
    const large = (tierLengths(factory).at(-1) ?? 1) + 300_000
    const bytes = bytesOf(large, 3)
    const boom = new Error('the producer failed')
    const property = 'the medium after'
    for (const options of [{}, { length: large + 1 }]) {
      const paused = gate()
      const script = { bytes, chunkLength: 10_000, then: () => paused.pass().then(throwing(boom)) }
      const failing = store.put(present(PRODUCERS['an async iterable']?.(script), 'a producer').content, options)
      const refused = refuses(() => failing, error => error === boom, 'the put fails with its cause')
      await paused.reached
      const during = await oracle.counts()
      holds(during.stages >= 1, 'while a put runs its stage is on the medium', `${during.stages} stages`)
      equal(placed(during), { inlineEntries: 0, bodies: 0 }, 'while a put runs there is no entry')
      paused.open()
      await refused
      equal(leftovers(await oracle.counts()), NOTHING, `${property} a failed put`)
      equal(placed(await oracle.counts()), { inlineEntries: 0, bodies: 0 }, `${property} a failed put`)
    }
    const writer = store.writer()
    await writer.write(bytes)
    await writer.discard()
    equal(leftovers(await oracle.counts()), NOTHING, `${property} a discarded writer`)
    const made = await store.put(iterate([bytes]))
    // A put that wrote all of its bytes and then found the entry: what it wrote has to go.
    for (const path of PUT_PATHS) await (await path.put(store, bytes)).release()
    const { stages, trash } = await oracle.counts()
    equal({ stages, trash }, { stages: 0, trash: 0 }, `${property} re-puts that lost`)
    equal(placed(await oracle.counts()), { inlineEntries: 0, bodies: 1 }, `${property} a success and its re-puts`)
    await made.release()
    equal(await store.delete(made.key), true, 'the entry is deleted')
    equal({ ...placed(await oracle.counts()), ...leftovers(await oracle.counts()) }, { inlineEntries: 0, bodies: 0, ...NOTHING }, `${property} everything is gone`)
    await store.close()
    await factory.teardown()
  }
})

const LATER = 24 * 60 * 60 * 1000

// O19
const deadWriter = row({
  name: 'what_a_stalled_writer_left_behind_is_reclaimed_after_its_expiry',
  statement: 'The stage of a writer that went silent lives until it expires, then maintenance takes the row and the half body, and the writer cannot publish.',
  stamps: ['docs/spec/sweep.md#maintenance', 'docs/spec/sweep.md#crash-points', 'docs/spec/engine-contract.md#stages'],
  invariant: 'INV-12',
  needs: ['dual-tier', 'second', 'age', 'durable'],
  cases: ['O19'],
  async run(factory) {
    const store = await factory.open()
    const cleaner = present(await factory.second?.(store), 'a second instance')
    const oracle = oracleOf(factory, store)
    const kept = await cleaner.put(bytesOf(tierLengths(factory).at(-1) ?? 1, 1))
    const bytes = bytesOf(1_500_000, 19)
    const writer = store.writer()
    await writer.write(bytes)
    holds((await oracle.counts()).stages >= 1, 'the stalled writer has its stage on the medium')
    equal((await cleaner.maintain()).stagesReclaimed, 0, 'a stage that has not expired is left alone')
    holds((await oracle.counts()).stages >= 1, 'and is still there')
    await oracle.age?.(LATER)
    equal((await cleaner.maintain()).stagesReclaimed, 1, 'an expired stage is reclaimed and counted')
    const { stages, trash, bodies } = await oracle.counts()
    equal({ stages, trash, bodies }, { stages: 0, trash: 0, bodies: 1 }, 'nothing is left of it, and the committed entry is')
    await refuses(() => writer.commit(), () => true, 'a writer whose stage expired cannot publish')
    equal((await oracle.counts()).stages, 0, 'nor does it leave anything')
    equal(await cleaner.has(kept.key), true, 'the committed entry is untouched')
    await cleaner.close()
    await store.close()
    await factory.teardown()
  }
})

const virgin = (name: string, trait: 'root' | 'file', statement: string) =>
  row({
    name,
    statement,
    stamps: ['docs/spec/store-api.md#opening', 'docs/spec/engine-contract.md#catalog'],
    invariant: 'INV-7',
    needs: ['medium', trait],
    run: over(async (store, factory) => {
      const oracle = oracleOf(factory, store)
      const key = `blake3:${'00'.repeat(32)}`
      equal(await store.get(key), undefined, 'get')
      equal(await store.stat(key), undefined, 'stat')
      equal(await store.has(key), false, 'has')
      equal([...(await store.hasMany([key])).values()], [false], 'hasMany')
      for await (const entry of store.list()) equal(entry, undefined, 'list answers nothing')
      equal((await store.usage()).entries, 0, 'usage')
      equal(await store.pin(key), undefined, 'pin')
      equal(await store.delete(key), false, 'delete')
      equal((await store.why(key)).verdict, 'absent', 'why')
      equal(await oracle.exists(), false, 'nothing was created by asking')
      await store.put('now it is')
      equal(await oracle.exists(), true, 'the first put makes the pool')
    })
  })

const virginRoot = virgin(
  'virgin_store_reads_are_no_ops_on_a_fresh_root',
  'root',
  'Reads of a pool whose folder is not there yet answer "absent" and create nothing.'
)
const virginFile = virgin(
  'virgin_store_reads_are_no_ops_on_a_fresh_file',
  'file',
  'Reads of a pool whose database file is not there yet answer "absent" and create nothing.'
)

// O16
const bodiesGone = row({
  name: 'candidates_whose_bytes_are_gone_do_not_hold_up_the_others',
  statement: 'Bytes that are gone already count as removed; a drop that fails is reported, its entry is gone, and all others go in the same sweep.',
  stamps: ['docs/spec/sweep.md#report', 'docs/spec/engine-contract.md#body-store'],
  invariant: 'INV-4',
  needs: ['dual-tier', 'medium', 'corrupt'],
  cases: ['O16'],
  async run(factory) {
    const denied = Object.assign(new Error('EACCES: permission denied, unlink'), { code: 'EACCES', errno: -13, syscall: 'unlink' })
    let poisoned: string | undefined
    const wrap = (definition: Parameters<typeof tapped>[0]) =>
      tapped(definition, {
        bodies: inner => ({
          async drop(what, call) {
            const results = await inner.drop(what.filter(one => one !== poisoned), call)
            return what.map(one => (one === poisoned ? { what: one, error: denied } : present(results.find(result => result.what === one), 'a result')))
          }
        }),
        catalog: inner => ({
          async publish(items, call) {
            for (const { bytes } of items) if (bytes.kind === 'staged') poisoned ??= bytes.locator
            return await inner.publish(items, call)
          }
        })
      })
    const store = await factory.open({ wrap })
    const oracle = oracleOf(factory, store)
    const total = 60
    const large = tierLengths(factory).at(-1) ?? 1
    const keys = []
    for (let at = 0; at < total; at += 1) keys.push((await putReleased(store, bytesOf(large, at))).key)
    for (const key of keys.slice(1, 16)) await oracle.corrupt?.(key, 'remove')
    store.protect(sourceOver([]))
    const staging = await store.sweep()
    const report = store.form === 'durable' ? await store.sweep() : staging
    equal([report.aborted, report.deleted], [undefined, total], 'every entry is deleted in the same sweep')
    equal(report.failed.map(({ cause, key }) => [cause === denied || (cause as { cause?: unknown })?.cause === denied, key]), [[true, keys[0]]], 'the drop that failed is reported')
    equal(placed(await oracle.counts()), { inlineEntries: 0, bodies: 1 }, 'only the bytes that could not be dropped are left')
    const after = await store.sweep()
    equal([after.aborted, after.scanned, after.deleted], [undefined, 0, 0], 'the next sweep is not held up by it')
    await store.close()
    await factory.teardown()
  }
})

export const placementRows = [routing, boundary, fallThrough, thresholdChange, exactOnDisk, deadWriter, virginRoot, virginFile, bodiesGone]
