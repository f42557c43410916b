/** INV-10 and INV-12: close settles everything, and is final. */
import { StoreClosed } from '../codes.js'
import { bytesOf, longLength, tierLengths } from '../content.js'
import { codeOf, equal, holds, present, refuses, settled } from '../expect.js'
import { PRODUCERS, stallingAfter } from '../failing.js'
import { over, row } from '../row.js'
import { iterate } from '../sources.js'
import { gate } from '../tap.js'

/**
 * Contract stamp: docs/spec/store-api.md#opening
 * Contract stamp: docs/spec/store-api.md#errors
 */
const withWork = row({
  name: 'close_with_work_in_flight_settles_everything',
  statement:
    'close ends puts that wait for their producer and reads that wait for their consumer as closed, tells the producers, and resolves.',
  stamps: ['docs/spec/store-api.md#opening', 'docs/spec/store-api.md#errors'],
  invariant: 'INV-10',
  async run(factory) {
    const store = await factory.open()
    const { key } = await store.put(iterate([bytesOf(longLength(factory), 1)]))
    const puts = []
    const producers = []
    for (const length of tierLengths(factory)) {
      for (const produce of Object.values(PRODUCERS)) {
        const waiting = gate()
        const producer = produce({
          bytes: bytesOf(length, 2),
          chunkLength: 100,
          atEnd: stallingAfter(waiting.pass)
        })
        producers.push(producer)
        puts.push(settled(store.put(producer.content)))
        await waiting.reached
      }
    }
    const writer = store.writer()
    await writer.write(bytesOf(10, 3))
    const reader = present(await store.get(key), 'the entry is there')[Symbol.asyncIterator]()
    await reader.next()
    const sweeping = gate()
    store.protect({ name: 'stalled', live: stallingAfter(sweeping.pass) })
    const sweep = settled(store.sweep())
    await sweeping.reached
    await Promise.all([store.close(), store.close()])
    for (const end of await Promise.all(puts))
      equal('error' in end ? codeOf(end.error) : 'resolved', StoreClosed, 'a put that waited for its producer')
    equal(
      codeOf(((await settled(writer.commit())) as { error?: unknown }).error),
      StoreClosed,
      'a writer that was open'
    )
    const read = await settled(Promise.resolve(reader.next()))
    // A body that came in one piece has ended; one that had more to come is cut off.
    if ('error' in read) equal(codeOf(read.error), StoreClosed, 'a read that was under way')
    else equal(read.value.done, true, 'a read that was under way has ended')
    const swept = await sweep
    if ('error' in swept) equal(codeOf(swept.error), StoreClosed, 'a sweep that was under way')
    else holds(swept.value.aborted !== undefined, 'a sweep that was under way says that it was aborted')
    const told = producers.filter(producer => producer.endings() > 0).length
    // An async generator that waits inside itself cannot be reached; streams can.
    holds(told >= (producers.length / 3) * 2, 'producers that can be told are told', `${told} of ${producers.length}`)
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/store-api.md#opening
 * Contract stamp: docs/spec/store-api.md#errors
 */
const afterClose = row({
  name: 'every_call_after_close_is_refused',
  statement: 'A closed store refuses every call with one typed error, and closing again is no error.',
  stamps: ['docs/spec/store-api.md#opening', 'docs/spec/store-api.md#errors'],
  invariant: 'INV-10',
  run: async factory => {
    const store = await factory.open()
    const receipt = await store.put('before')
    const { key } = receipt
    const blob = present(await store.get(key), 'the entry is there')
    await store.close()
    await store.close()
    await store[Symbol.asyncDispose]()
    const calls: Readonly<Record<string, () => unknown>> = {
      put: () => store.put('after'),
      writer: () => store.writer().commit(),
      get: () => store.get(key),
      stat: () => store.stat(key),
      has: () => store.has(key),
      hasMany: () => store.hasMany([key]),
      list: async () => {
        for await (const _ of store.list());
      },
      delete: () => store.delete(key),
      deleteMany: () => store.deleteMany([key]),
      pin: () => store.pin(key),
      protect: () => store.protect({ name: 'late', live: () => [] }),
      sweep: () => store.sweep(),
      maintain: () => store.maintain(),
      verify: () => store.verify(),
      usage: () => store.usage(),
      why: () => store.why(key)
    }
    for (const [name, call] of Object.entries(calls)) await refuses(call, StoreClosed, `${name} after close`)
    // A blob that came with its bytes may still give them; one that has to be read cannot be.
    const late = await settled(blob.bytes())
    if ('error' in late) equal(codeOf(late.error), StoreClosed, 'bytes() of a blob after close')
    else equal(Buffer.from(late.value).toString(), 'before', 'bytes() of a blob after close')
    await receipt.release()
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/store-api.md#opening
 * Contract stamp: docs/spec/engine-contract.md#body-store
 */
const closeFrees = row({
  name: 'close_frees_every_handle_and_pin',
  statement: 'After close nothing of the store is open on the medium, and no pin of it is left there.',
  stamps: ['docs/spec/store-api.md#opening', 'docs/spec/engine-contract.md#body-store'],
  invariant: 'INV-12',
  needs: ['medium', 'handles'],
  async run(factory) {
    const store = await factory.open()
    const oracle = present(factory.medium?.(store), 'an oracle')
    for (const length of tierLengths(factory)) {
      const { key } = await store.put(iterate([bytesOf(length, 4)]))
      const iterator = present(await store.get(key), 'the entry is there')[Symbol.asyncIterator]()
      await iterator.next()
    }
    await store.close()
    equal(await oracle.handles?.(), 0, 'no handle is open')
    equal((await oracle.counts()).pins, 0, 'no pin is left')
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/store-api.md#limits
 * Contract stamp: docs/spec/sweep.md#liveness-sources
 */
const userCode = row({
  name: 'user_code_may_use_the_store_it_runs_under',
  statement:
    'A source that reads the store, and many puts that stream other blobs of the same store, end well: nothing is held while user code runs.',
  stamps: ['docs/spec/store-api.md#limits', 'docs/spec/sweep.md#liveness-sources'],
  invariant: 'INV-10',
  run: over(async (store, factory) => {
    const length = tierLengths(factory).at(-1) ?? 1
    const keys: string[] = []
    for (let at = 0; at < 10; at += 1) keys.push((await store.put(bytesOf(length, at))).key)
    const copies = keys.map(async key => await store.put(present(await store.get(key), 'a blob').stream()))
    equal(
      (await Promise.all(copies)).map(({ key }) => key),
      keys,
      'blobs streamed into their own store are themselves'
    )
    store.protect({
      name: 'curious',
      async *live() {
        for (const key of keys) if ((await store.stat(key)) !== undefined) yield key
      }
    })
    equal((await store.sweep()).live, keys.length, 'a source may ask the store')
  })
})

export const closingRows = [withWork, afterClose, closeFrees, userCode]
