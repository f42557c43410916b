/** INV-3 and INV-8 where what was handed over does not keep still: sources that fail before they are read, memory that is taken away. */
import { Readable } from 'node:stream'
import type { Store } from '@alkblobs/core'
import { InvalidContent } from '../codes.js'
import { accepts, bytesOf, longLength, tierLengths } from '../content.js'
import { codeOf, equal, holds, present, sameBytes, settled } from '../expect.js'
import { over, row } from '../row.js'
import { expectNoResidue } from '../sweeping.js'
import { gate, watch } from '../tap.js'

/**
 * Contract stamp: docs/spec/store-api.md#content
 * Contract stamp: docs/spec/store-api.md#putting
 */
const failsEarly = row({
  name: 'a_readable_that_fails_before_the_pool_exists_rejects_its_put',
  statement:
    'A Readable is listened to from the call on, so that one that fails while the pool is still being made rejects its put with that error.',
  stamps: ['docs/spec/store-api.md#content', 'docs/spec/store-api.md#putting'],
  invariant: 'INV-3',
  cases: ['O45'],
  async run(factory) {
    const held = gate()
    let isOpen = false
    const before = () => (isOpen ? held.pass() : undefined)
    const store = await factory.open({ wrap: watch({ before }) })
    isOpen = true
    const failing = new Readable({ read() {} })
    const put = settled(store.put(failing))
    // Without a listener the failure would end the process, and no row could report it.
    holds(failing.listenerCount('error') > 0, 'somebody hears the failure of a source that nobody has read yet')
    const cause = new Error('no such file')
    failing.destroy(cause)
    await new Promise<void>(done => failing.once('close', done))
    held.open()
    const end = await put
    equal('error' in end ? end.error : 'success', cause, 'the put rejects with the very error of its source')
    equal((await store.usage()).entries, 0, 'nothing was stored')
    await expectNoResidue(store, 'nothing is left of it')
    await store.close()
    await factory.teardown()
  }
})

/** What `ArrayBuffer` is since resizable ones came; older types do not know them. */
type Resizable = ArrayBuffer & { resize(length: number): void }
const ResizableBuffer = ArrayBuffer as unknown as new (length: number, options: { maxByteLength: number }) => Resizable

/** Takes the memory of some bytes away, and answers the bytes. */
const THEFTS: Readonly<Record<string, (bytes: Uint8Array) => { given: Uint8Array; take: () => unknown }>> = {
  transferred(bytes) {
    const given = bytes.slice()
    return { given, take: () => structuredClone(given.buffer, { transfer: [given.buffer as ArrayBuffer] }) }
  },
  shrunk(bytes) {
    const buffer = new ResizableBuffer(bytes.length, { maxByteLength: bytes.length })
    const given = new Uint8Array(buffer)
    given.set(bytes)
    return { given, take: () => buffer.resize(bytes.length >> 1) }
  }
}

/** Turns of the event loop after which the memory is taken: the same turn, and the first steps of a put. */
const TURNS = [0, 1, 2, 4, 8] as const

async function expectWholeOrRefused(store: Store, bytes: Uint8Array, put: Promise<{ key: string }>, what: string) {
  const end = await settled(put)
  if ('error' in end) {
    equal(codeOf(end.error), InvalidContent, `${what} is refused with a code`)
    return
  }
  sameBytes(await present(await store.get(end.value.key), what).bytes(), bytes, `${what} and acknowledged is whole`)
}

/**
 * Contract stamp: docs/spec/store-api.md#putting
 * Contract stamp: docs/spec/store-api.md#content
 */
const takenAway = row({
  name: 'memory_taken_away_during_a_put_is_stored_whole_or_refused',
  statement:
    'A buffer that its caller transfers away or shrinks while it is being put is stored as it was or refused; never as other bytes.',
  stamps: ['docs/spec/store-api.md#putting', 'docs/spec/store-api.md#content'],
  invariant: 'INV-8',
  cases: ['O48', 'O49'],
  run: over(async (store, factory) => {
    const several = 3 * 1024 * 1024 + 5
    const lengths = [...tierLengths(factory), accepts(factory, several) ? several : longLength(factory)]
    let seed = 0
    for (const length of lengths) {
      for (const [how, theft] of Object.entries(THEFTS)) {
        for (const turns of TURNS) {
          seed += 1
          const bytes = bytesOf(length, seed)
          const { given, take } = theft(bytes)
          const put = store.put(given)
          put.catch(() => {})
          for (let turn = 0; turn < turns; turn += 1) await new Promise<void>(done => setImmediate(done))
          take()
          await expectWholeOrRefused(store, bytes, put, `content of ${length} bytes, ${how} after ${turns} turns`)
        }
      }
    }
    for (const { key, count } of store.pins())
      equal([await store.has(key), count], [true, 1], 'what is pinned is there')
    equal((await store.usage()).stages, 0, 'no stage is left')
    equal((await store.verify()).clean, true, 'every entry is what its key says')
  })
})

export const unsteadyRows = [failsEarly, takenAway]
