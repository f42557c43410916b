/** Reads: ranges, shapes, failures of the medium, and bodies that go or move while they are read. */
import { WINDOW_LENGTH } from '@alkblobs/core/engine'
import { EngineFailed, Removed } from '../codes.js'
import { accepts, bytesOf, longLength, tierLengths } from '../content.js'
import { equal, holds, present, refuses, sameBytes, settled } from '../expect.js'
import { over, row } from '../row.js'
import { iterate } from '../sources.js'
import { expectEntries, putReleased, sourceOver } from '../sweeping.js'
import { type Operation, tapped, watch } from '../tap.js'
import type { StoreFactory } from '../factory.js'

const edges = (size: number): readonly number[] => [
  0, 1, size - 1, size, size + 1, size + 100, -1, -size, -size - 1,
  Math.floor(size / 2), 1024, 2 ** 31, 2 ** 53 - 1, -(2 ** 53 - 1), Number.POSITIVE_INFINITY, Number.NEGATIVE_INFINITY
]

// O51
const rangesClamp = row({
  name: 'ranges_clamp_as_blob_slice_does',
  statement: 'A range is what `Uint8Array.prototype.slice` gives, at every edge and in every tier; what is no integer is refused by type.',
  stamps: ['docs/spec/store-api.md#ranges', 'docs/adr/006-read-path.md#decision'],
  invariant: 'INV-8',
  cases: ['O51'],
  run: over(async (store, factory) => {
    const sizes = [0, 1, 1023, 1024, 1025, 3 * 1024 + 7, ...tierLengths(factory)].filter(size => accepts(factory, size))
    for (const size of sizes) {
      const bytes = bytesOf(size, 51)
      const { key } = await store.put(bytes)
      const blob = present(await store.get(key), 'the entry is there')
      for (const start of edges(size)) {
        for (const end of [undefined, ...edges(size)]) {
          const part = blob.slice(start, end)
          const expected = bytes.slice(start, end)
          equal(part.size, expected.length, `slice(${start}, ${end}) of ${size}: its size`)
          sameBytes(await part.bytes(), expected, `slice(${start}, ${end}) of ${size}`)
        }
      }
      sameBytes(await blob.slice(1).slice(1, -1).bytes(), bytes.slice(1).slice(1, -1), 'a slice of a slice')
      const bad: readonly (readonly [unknown, string])[] = [[Number.NaN, 'RangeError'], [1.5, 'RangeError'], [-0.5, 'RangeError'], [1n, 'TypeError'], ['0', 'TypeError'], [{}, 'TypeError'], [null, 'TypeError']]
      for (const [value, name] of bad) {
        const named = (error: unknown) => (error as Error).name === name
        await refuses(() => blob.slice(value as number, 1), named, `slice(${String(value)}, 1) is a ${name}`)
        await refuses(() => blob.slice(0, value as number), named, `slice(0, ${String(value)}) is a ${name}`)
      }
    }
  })
})

const windows = row({
  name: 'pread_windows_read_committed_files_mid_slices_and_eof_clamped',
  statement: 'Ranges inside, across and at the edges of read windows are exact, and clamped at the end of the body.',
  stamps: ['docs/spec/store-api.md#ranges', 'docs/spec/engine-contract.md#body-store', 'docs/adr/006-read-path.md#decision'],
  invariant: 'INV-1',
  needs: ['dual-tier', 'root'],
  run: over(async store => {
    const size = 3 * WINDOW_LENGTH + 77
    const bytes = bytesOf(size, 33)
    const { key } = await store.put(iterate([bytes]))
    const blob = present(await store.get(key), 'the entry is there')
    const points = [0, 1, WINDOW_LENGTH - 1, WINDOW_LENGTH, WINDOW_LENGTH + 1, 2 * WINDOW_LENGTH + 5, size - 1, size, size + 9, 2 ** 53 - 1]
    for (const start of points) {
      for (const end of points) {
        sameBytes(await blob.slice(start, end).bytes(), bytes.slice(start, end), `${start} to ${end} of ${size}`)
      }
    }
    let longest = 0
    for await (const chunk of blob) longest = Math.max(longest, chunk.length)
    holds(longest <= WINDOW_LENGTH, 'a stream comes in windows of bounded size', `${longest} bytes in one chunk`)
  })
})

const blobShape = row({
  name: 'a_stored_blob_reads_like_a_web_blob',
  statement: 'bytes, text, arrayBuffer, stream and iteration give the same content, any number of times, and a byte stream can be read into a buffer.',
  stamps: ['docs/spec/store-api.md#reading'],
  invariant: 'INV-1',
  run: over(async (store, factory) => {
    for (const length of tierLengths(factory)) {
      const text = 'grüße, 世界 '.repeat(length).slice(0, Math.floor(length / 4))
      const bytes = Buffer.from(text)
      const { key } = await store.put(text)
      const blob = present(await store.get(key), 'the text is there')
      for (let time = 0; time < 2; time += 1) {
        equal(await blob.text(), text, 'text()')
        sameBytes(new Uint8Array(await blob.arrayBuffer()), bytes, 'arrayBuffer()')
        sameBytes(new Uint8Array(await new Response(blob.stream()).arrayBuffer()), bytes, 'stream()')
      }
      const reader = blob.stream().getReader({ mode: 'byob' })
      const parts: Uint8Array[] = []
      for (;;) {
        const step = await reader.read(new Uint8Array(37))
        if (step.value !== undefined) parts.push(step.value)
        if (step.done) break
      }
      sameBytes(Buffer.concat(parts), bytes, 'a byte stream read into buffers of 37')
    }
  })
})

const inputOutput = Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO', errno: -5, syscall: 'read' })

const failureIsNoAbsence = row({
  name: 'a_failure_of_the_medium_is_an_error_never_an_absence',
  statement: 'When the medium fails, reads reject with the engine, the operation and the cause; nothing answers "absent" or ends early.',
  stamps: ['docs/spec/store-api.md#errors', 'docs/spec/engine-contract.md#catalog', 'docs/spec/engine-contract.md#body-store'],
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
          for await (const _ of store.list()) continue
        }
      }
      for (const [name, call] of Object.entries(calls)) await refuses(call, failed, `${name} on a failing medium`)
      // An inline body may have come with the record; a body elsewhere is read now, and cannot be.
      const late = await settled(blob.bytes())
      if ('value' in late) sameBytes(late.value, bytes, 'a body that was at hand is whole')
      else holds(failed(late.error), 'a body on a failing medium is an engine error', String(late.error))
      failing = false
      sameBytes(await present(await store.get(key), 'the entry is back').bytes(), bytes, 'the medium is back, and so is the entry')
    }
    await store.close()
    await factory.teardown()
  }
})

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

const removedWhileRead = row({
  name: 'a_read_whose_entry_is_removed_ends_whole_or_says_so',
  statement: 'An entry deleted while it is read is read to its end, or the read rejects as removed; it never ends early as if complete.',
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
      if ('error' in gone) equal((gone.error as { code?: unknown }).code, Removed, 'a blob whose entry is gone is removed')
      else sameBytes(gone.value, bytes, 'or was at hand')
      await store.put(bytes)
      sameBytes(await before.bytes(), bytes, 'a blob whose entry came back is read')
    }
  })
})

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

export const readingRows = [rangesClamp, windows, blobShape, failureIsNoAbsence, visibleWhole, removedWhileRead, removedBeforeRead, pinnedReader]
