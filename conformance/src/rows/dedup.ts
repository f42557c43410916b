/** INV-2: the same content is one entry, however often and by whomever it is put. */
import { bytesOf, tierLengths } from '../content.js'
import { equal, holds, present, sameBytes } from '../expect.js'
import { over, row } from '../row.js'
import { PUT_PATHS } from '../sources.js'
import { collect, expectCollected, expectEntries, putReleased, releasesArrived, sourceOver } from '../sweeping.js'

/**
 * Contract stamp: docs/spec/store-api.md#putting
 * Contract stamp: docs/adr/003-put-paths-and-dispatch.md#decision
 */
const onePoolEntry = row({
  name: 'dedup_identical_content_is_one_pool_entry',
  statement:
    'The same content put again, by the same or another path, is the entry that is there; the first writer wins.',
  stamps: ['docs/spec/store-api.md#putting', 'docs/adr/003-put-paths-and-dispatch.md#decision'],
  invariant: 'INV-2',
  run: over(async (store, factory) => {
    store.protect(sourceOver([]))
    for (const length of tierLengths(factory)) {
      const bytes = bytesOf(length, 12)
      for (const first of PUT_PATHS) {
        const made = await first.put(store, bytes)
        equal(made.created, true, `${first.name} makes the entry`)
        for (const again of PUT_PATHS) {
          const found = await again.put(store, bytes)
          equal(found.created, false, `${again.name} finds what ${first.name} made`)
          equal(found.key, made.key, `${again.name} answers the key of ${first.name}`)
          await found.release()
        }
        await made.release()
        await expectEntries(store, 1, `after ${first.name} and every re-put there is one entry`)
        await expectCollected(store, 1, length, `the entry of ${first.name} and its re-puts is collected once`)
      }
    }
  })
})

/**
 * Contract stamp: docs/spec/store-api.md#putting
 * Contract stamp: docs/spec/engine-contract.md#publish
 */
const hundredAtOnce = row({
  name: 'a_hundred_simultaneous_puts_of_one_content_make_one_entry',
  statement: 'Of many puts of one content at the same time all resolve with one key, and exactly one made the entry.',
  stamps: ['docs/spec/store-api.md#putting', 'docs/spec/engine-contract.md#publish'],
  invariant: 'INV-2',
  run: over(async (store, factory) => {
    store.protect(sourceOver([]))
    for (const length of tierLengths(factory)) {
      const bytes = bytesOf(length, 100)
      const puts = Array.from({ length: 100 }, (_, index) => PUT_PATHS[index % PUT_PATHS.length]?.put(store, bytes))
      const receipts = (await Promise.all(puts)).map(receipt => present(receipt, 'every put has a path'))
      equal(new Set(receipts.map(({ key }) => key)).size, 1, 'all simultaneous puts answer one key')
      equal(receipts.filter(({ created }) => created).length, 1, 'exactly one of them made the entry')
      const key = present(receipts[0], 'a receipt').key
      sameBytes(await present(await store.get(key), 'the entry is there').bytes(), bytes, 'the entry is whole')
      await Promise.all(receipts.map(receipt => receipt.release()))
      await expectCollected(store, 1, length, 'there was one entry to collect')
    }
  })
})

// O09, with one instance
/**
 * Contract stamp: docs/spec/store-api.md#putting
 * Contract stamp: docs/spec/sweep.md#invariants
 */
const putAfterCollection = row({
  name: 'a_reput_after_collection_stores_the_bytes_again',
  statement:
    'A put after its content was deleted or swept away really stores it: no memory of what once existed is believed.',
  stamps: ['docs/spec/store-api.md#putting', 'docs/spec/sweep.md#invariants'],
  invariant: 'INV-11',
  cases: ['O09'],
  run: over(async (store, factory) => {
    store.protect(sourceOver([]))
    for (const length of tierLengths(factory)) {
      const bytes = bytesOf(length, 9)
      const { key } = await putReleased(store, bytes)
      await present(await store.get(key), 'the entry is there').bytes()
      equal(await store.delete(key), true, 'the entry is deleted')
      for (const way of ['delete', 'sweep']) {
        const again = await store.put(bytes)
        equal(again.created, true, `a put after a ${way} makes the entry again`)
        const blob = present(await store.get(key), `the entry is there after a ${way} and a re-put`)
        sameBytes(await blob.bytes(), bytes, `its bytes are whole after a ${way} and a re-put`)
        await again.release()
        equal((await collect(store)).deleted, 1, 'the entry is swept')
        equal(await store.has(key), false, 'and absent')
      }
    }
  })
})

// O09, with two instances
/**
 * Contract stamp: docs/spec/store-api.md#putting
 * Contract stamp: docs/spec/sweep.md#invariants
 */
const putAfterOthersCollection = row({
  name: 'a_reput_after_another_instance_collected_stores_the_bytes_again',
  statement:
    'What one instance knew of an entry does not outlive its removal by another: the next put stores the bytes.',
  stamps: ['docs/spec/store-api.md#putting', 'docs/spec/sweep.md#invariants'],
  invariant: 'INV-11',
  needs: ['second'],
  cases: ['O09'],
  async run(factory) {
    const first = await factory.open()
    const second = present(await factory.second?.(first), 'a second instance')
    second.protect(sourceOver([]))
    for (const length of tierLengths(factory)) {
      const bytes = bytesOf(length, 19)
      const { key } = await putReleased(first, bytes)
      await present(await first.stat(key), 'the first instance knows the entry')
      await present(await first.get(key), 'the first instance reads the entry').bytes()
      await releasesArrived(first)
      equal((await collect(second)).deleted, 1, 'the other instance sweeps the entry away')
      const again = await first.put(bytes)
      equal(again.created, true, 'the first instance stores the bytes again')
      const third = present(await factory.second?.(first), 'a third instance')
      sameBytes(await present(await third.get(key), 'the entry is there').bytes(), bytes, 'a third instance reads them')
      await third.close()
      await again.release()
      await releasesArrived(first)
      equal((await collect(second)).deleted, 1, 'the pool is empty again')
    }
    await second.close()
    await first.close()
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/store-api.md#putting
 */
const concurrentDifferent = row({
  name: 'simultaneous_puts_of_different_contents_do_not_mix',
  statement: 'Many puts of different contents at the same time each store their own bytes.',
  stamps: ['docs/spec/store-api.md#putting'],
  invariant: 'INV-2',
  run: over(async (store, factory) => {
    const contents = tierLengths(factory).flatMap(length =>
      Array.from({ length: 20 }, (_, at) => bytesOf(length + at, at))
    )
    const receipts = await Promise.all(contents.map((bytes, at) => PUT_PATHS[at % PUT_PATHS.length]?.put(store, bytes)))
    await expectEntries(store, contents.length, 'every content is an entry')
    for (const [at, receipt] of receipts.entries()) {
      const blob = await store.get(present(receipt, 'every put has a path').key)
      holds(receipt?.created === true, 'each of them made its entry')
      sameBytes(
        await present(blob, 'the entry is there').bytes(),
        present(contents[at], 'a content'),
        'the bytes are its own'
      )
    }
  })
})

export const dedupRows = [
  onePoolEntry,
  hundredAtOnce,
  putAfterCollection,
  putAfterOthersCollection,
  concurrentDifferent
]
