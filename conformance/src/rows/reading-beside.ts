import { EngineFailed, Removed } from '../codes.js'
import { bytesOf, longLength, tierLengths } from '../content.js'
import { equal, holds, present, refuses, sameBytes, settled } from '../expect.js'
import type { StoreFactory } from '../factory.js'
import { over, row } from '../row.js'
import { iterate } from '../sources.js'
import { expectEntries, putReleased, sourceOver } from '../sweeping.js'
import { type Operation, tapped, watch } from '../tap.js'

const inputOutput = Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO', errno: -5, syscall: 'read' })

/**
 * Contract stamp: docs/spec/store-api.md#errors
 * Contract stamp: docs/spec/engine-contract.md#catalog
 * Contract stamp: docs/spec/engine-contract.md#body-store
 */
const failureIsNoAbsence = row({
  name: 'a_failure_of_the_medium_is_an_error_never_an_absence',
  statement:
    'When the medium fails, reads reject with the engine, the operation and the cause; nothing answers "absent" or ends early.',
  stamps: [
    'docs/spec/store-api.md#errors',
    'docs/spec/engine-contract.md#catalog',
    'docs/spec/engine-contract.md#body-store'
  ],
  invariant: 'INV-9',
  async run(factory) {
    let failing = false
    const fails = (operation: Operation) => {
      if (failing && ['find', 'read', 'list', 'length'].includes(operation)) throw inputOutput
    }
    const wrap = (definition: Parameters<typeof tapped>[0]) =>
      tapped(watch({ before: fails })(definition), {
        bodies: inner => ({
          async *read(...args: Parameters<typeof inner.read>) {
            if (failing) throw inputOutput
            yield* inner.read(...args)
          }
        })
      })
    const store = await factory.open({ wrap })
    const failed = (error: unknown) => {
      const { code, cause, operation } = error as { code?: unknown; cause?: unknown; operation?: unknown }
      return code === EngineFailed && cause === inputOutput && typeof operation === 'string'
    }
    for (const length of tierLengths(factory)) {
      const bytes = bytesOf(length, 66)
      const { key } = await store.put(bytes)
      const blob = present(await store.get(key), 'the entry is there')
      failing = true
      const calls: Readonly<Record<string, () => unknown>> = {
        get: async () => await (await store.get(key))?.bytes(),
        stat: () => store.stat(key),
        has: () => store.has(key),
        hasMany: () => store.hasMany([key]),
        list: async () => {
          for await (const _ of store.list());
        }
      }
      for (const [name, call] of Object.entries(calls)) await refuses(call, failed, `${name} on a failing medium`)
      // An inline body may have come with the record; a body elsewhere is read now, and cannot be.
      const late = await settled(blob.bytes())
      if ('value' in late) sameBytes(late.value, bytes, 'a body that was at hand is whole')
      else holds(failed(late.error), 'a body on a failing medium is an engine error', String(late.error))
      failing = false
      sameBytes(
        await present(await store.get(key), 'the entry is back').bytes(),
        bytes,
        'the medium is back, and so is the entry'
      )
    }
    await store.close()
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/engine-contract.md#publish
 * Contract stamp: docs/spec/engine-contract.md#body-store
 */
const visibleWhole = row({
  name: 'an_entry_is_visible_only_once_it_is_whole',
  statement: 'Whoever looks for a key while its content is being put finds nothing, or the whole entry; never a part.',
  stamps: ['docs/spec/engine-contract.md#publish', 'docs/spec/engine-contract.md#body-store'],
  invariant: 'INV-3',
  run: over(async (store, factory) => {
    for (const length of [...tierLengths(factory), longLength(factory)]) {
      const bytes = bytesOf(length, 91)
      const key = (await putReleased(store, bytes)).key
      await store.delete(key)
      let putting = true
      const put = store.put(iterate([bytes.slice(0, length >> 1), bytes.slice(length >> 1)])).finally(() => {
        putting = false
      })
      let looks = 0
      while (putting) {
        looks += 1
        const blob = await store.get(key)
        if (blob !== undefined) {
          equal(blob.size, length, 'an entry that can be seen has its length')
          sameBytes(await blob.bytes(), bytes, 'an entry that can be seen is whole')
        }
        await new Promise<void>(done => setImmediate(done))
      }
      holds(looks > 0, 'the key was looked for while it was put')
      const receipt = await put
      equal(receipt.created, true, 'the put made the entry')
      await receipt.release()
    }
  })
})

/** Stores a body longer than a window and answers a reader that has seen its first chunk. */
async function midway(factory: StoreFactory, store: Awaited<ReturnType<StoreFactory['open']>>) {
  const bytes = bytesOf(longLength(factory), 92)
  const receipt = await store.put(iterate([bytes]))
  const iterator = present(await store.get(receipt.key), 'the entry is there')[Symbol.asyncIterator]()
  const first = await iterator.next()
  holds(first.done !== true, 'a first chunk')
  return { bytes, receipt, iterator, first: first.value as Uint8Array }
}

async function rest(iterator: AsyncIterator<Uint8Array>): Promise<Uint8Array> {
  const parts: Uint8Array[] = []
  for (let step = await iterator.next(); step.done !== true; step = await iterator.next()) parts.push(step.value)
  return Buffer.concat(parts)
}

/**
 * Contract stamp: docs/spec/store-api.md#reading
 * Contract stamp: docs/adr/006-read-path.md#decision
 */
const removedWhileRead = row({
  name: 'a_read_whose_entry_is_removed_ends_whole_or_says_so',
  statement:
    'An entry deleted while it is read is read to its end, or the read rejects as removed; it never ends early as if complete.',
  stamps: ['docs/spec/store-api.md#reading', 'docs/adr/006-read-path.md#decision'],
  invariant: 'INV-9',
  run: over(async (store, factory) => {
    const { bytes, receipt, iterator, first } = await midway(factory, store)
    await receipt.release()
    equal(await store.delete(receipt.key), true, 'the entry is deleted in the middle of the read')
    const end = await settled(rest(iterator))
    if ('value' in end) sameBytes(Buffer.concat([first, end.value]), bytes, 'the read came to its whole end')
    else equal((end.error as { code?: unknown }).code, Removed, 'the read rejects as removed')
    const blob = await store.get(receipt.key)
    equal(blob, undefined, 'the entry is absent for a new read')
    await expectEntries(store, 0, 'nothing is left')
  })
})

/**
 * Contract stamp: docs/spec/store-api.md#reading
 */
const removedBeforeRead = row({
  name: 'a_blob_whose_entry_moved_is_read_where_it_lies_now',
  statement: 'A blob found before its entry was deleted and put again is read from its new place.',
  stamps: ['docs/spec/store-api.md#reading'],
  invariant: 'INV-9',
  run: over(async (store, factory) => {
    for (const length of tierLengths(factory)) {
      const bytes = bytesOf(length, 93)
      const { key } = await putReleased(store, bytes)
      const before = present(await store.get(key), 'the entry is there')
      await store.delete(key)
      const gone = await settled(before.bytes())
      if ('error' in gone)
        equal((gone.error as { code?: unknown }).code, Removed, 'a blob whose entry is gone is removed')
      else sameBytes(gone.value, bytes, 'or was at hand')
      await store.put(bytes)
      sameBytes(await before.bytes(), bytes, 'a blob whose entry came back is read')
    }
  })
})

/**
 * Contract stamp: docs/spec/store-api.md#reading
 * Contract stamp: docs/spec/sweep.md#pins
 */
const pinnedReader = row({
  name: 'a_read_under_a_pin_is_whole_whatever_runs_beside_it',
  statement: 'While its key is pinned, a read survives sweeps, deletes and re-puts beside it.',
  stamps: ['docs/spec/store-api.md#reading', 'docs/spec/sweep.md#pins'],
  invariant: 'INV-11',
  run: over(async (store, factory) => {
    const { bytes, receipt, iterator, first } = await midway(factory, store)
    store.protect(sourceOver([]))
    for (let time = 0; time < 3; time += 1) {
      await store.sweep()
      await settled(store.delete(receipt.key))
      await putReleased(store, bytes)
    }
    sameBytes(Buffer.concat([first, await rest(iterator)]), bytes, 'the read came to its whole end')
  })
})

/**
 * Contract stamp: docs/spec/store-api.md#reading
 * Contract stamp: docs/spec/engine-contract.md#catalog
 */
const manyTogether = row({
  name: 'gets_asked_for_together_answer_what_there_is_by_then',
  statement:
    'Gets that are asked for in one go answer as each alone would, from no state that was over by then, and are in no way of writers.',
  stamps: ['docs/spec/store-api.md#reading', 'docs/spec/engine-contract.md#catalog'],
  invariant: 'INV-9',
  run: over(async (store, factory) => {
    const lengths = tierLengths(factory)
    const contents = Array.from({ length: 12 }, (_, i) => bytesOf(lengths[i % lengths.length] as number, 700 + i))
    const keys = await Promise.all(contents.map(async bytes => (await putReleased(store, bytes)).key))
    const expectThere = async (isThere: (i: number) => boolean, when: string) => {
      const blobs = await Promise.all(keys.map(key => store.get(key)))
      for (const [i, blob] of blobs.entries()) {
        equal(blob !== undefined, isThere(i), `entry ${i} is there, or not (${when})`)
        if (blob !== undefined)
          sameBytes(await blob.bytes(), contents[i] as Uint8Array, `entry ${i} is whole (${when})`)
      }
    }
    await expectThere(() => true, 'after the puts')
    for (let i = 0; i < keys.length; i += 3) await store.delete(keys[i] as string)
    await expectThere(i => i % 3 !== 0, 'after the deletes')
    const gone = keys.flatMap((_, i) => (i % 3 === 0 ? [contents[i] as Uint8Array] : []))
    const [found, receipts] = await Promise.all([
      Promise.all(keys.map(key => store.get(key))),
      Promise.all(gone.map(bytes => putReleased(store, bytes)))
    ])
    for (const [i, blob] of found.entries()) if (i % 3 !== 0) present(blob, `entry ${i} is there beside the puts`)
    for (const { created } of receipts) equal(created, true, 'a put beside gets of its key makes the entry')
    await expectThere(() => true, 'after they were put again')
  })
})

export const readingBesideRows = [
  failureIsNoAbsence,
  visibleWhole,
  removedWhileRead,
  removedBeforeRead,
  pinnedReader,
  manyTogether
]
