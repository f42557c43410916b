/** INV-10 in a crowd: what many operations at once hang on one signal, and in which order one reader is answered. */
import { getEventListeners } from 'node:events'
import type { Store } from '@alkblobs/core'
import { bytesOf, longLength, tierLengths } from '../content.js'
import { equal, present, sameBytes } from '../expect.js'
import { over, row } from '../row.js'
import { type Gate, gate } from '../tap.js'

/** More than Node's limit on listeners, several times over. */
const CROWD = 40

/** What a store can be asked for in a crowd; each waits at the gate in its middle. */
type Member = (seed: number) => Promise<unknown>

/** The kinds of operation that hang on a signal, over one store, under one signal. */
function members(store: Store, key: string, signal: AbortSignal, held: Gate): Readonly<Record<string, Member>> {
  return {
    async 'a stream put'(seed) {
      const source = async function* () {
        yield bytesOf(50, seed)
        await held.pass()
      }
      await (await store.put(source(), { signal })).release()
    },
    async 'a writer'(seed) {
      const writer = store.writer({ signal })
      await writer.write(bytesOf(50, seed))
      await held.pass()
      await (await writer.commit()).release()
    },
    async 'a read'() {
      const blob = present(await store.get(key, { signal }), 'the entry is there')
      const iterator = blob[Symbol.asyncIterator]()
      await iterator.next()
      await held.pass()
      while ((await iterator.next()).done !== true);
    }
  }
}

async function warningsOf(work: () => Promise<unknown>): Promise<string[]> {
  const warnings: string[] = []
  const hear = (warning: Error) => warnings.push(`${warning.name}: ${warning.message}`)
  process.on('warning', hear)
  try {
    await work()
    // Warnings are emitted in a later turn.
    await new Promise<void>(done => setImmediate(done))
  } finally {
    process.off('warning', hear)
  }
  return warnings.filter(warning => warning.startsWith('MaxListenersExceeded'))
}

/**
 * Contract stamp: docs/spec/store-api.md#putting
 * Contract stamp: docs/spec/store-api.md#errors
 */
const oneSignal = row({
  name: 'a_crowd_under_one_signal_warns_of_nothing_and_leaves_no_listener',
  statement: `${CROWD} stream puts, writers and reads at once under one signal make Node warn of nothing, and leave the signal when they end.`,
  stamps: ['docs/spec/store-api.md#putting', 'docs/spec/store-api.md#errors'],
  invariant: 'INV-10',
  async run(factory) {
    for (const kind of ['a stream put', 'a writer', 'a read']) {
      // A store of its own for each kind: who asks for room for its listeners must ask for itself.
      const store = await factory.open()
      const { key } = await store.put(bytesOf(longLength(factory), 1))
      const { signal } = new AbortController()
      const held = gate()
      const member = present(members(store, key, signal, held)[kind], 'the kind')
      const warnings = await warningsOf(async () => {
        const all = Array.from({ length: CROWD }, (_, seed) => member(seed))
        await held.reached
        held.open()
        await Promise.all(all)
      })
      equal(warnings, [], `Node has nothing to warn of when there are ${CROWD} times ${kind}`)
      equal(getEventListeners(signal, 'abort').length, 0, `${kind} that has ended has left the signal`)
      await store.close()
    }
    await factory.teardown()
  }
})

/**
 * Contract stamp: docs/spec/store-api.md#reading
 */
const queued = row({
  name: 'a_reader_that_asks_ahead_is_answered_in_order',
  statement:
    'Several next() calls at once on one iterator are answered one after the other: every byte once, then the end.',
  stamps: ['docs/spec/store-api.md#reading'],
  invariant: 'INV-1',
  run: over(async (store, factory) => {
    for (const length of [...tierLengths(factory), longLength(factory)]) {
      const bytes = bytesOf(length, length)
      const { key } = await store.put(bytes)
      const iterator = present(await store.get(key), 'the entry is there')[Symbol.asyncIterator]()
      const steps = await Promise.all(Array.from({ length: 60 }, () => iterator.next()))
      const chunks = steps.flatMap(({ done, value }) => (done === true || value === undefined ? [] : [value]))
      sameBytes(Buffer.concat(chunks), bytes, `${length} bytes, asked for ahead`)
      equal(steps.at(-1)?.done, true, 'the last answers are the end')
      equal((await iterator.next()).done, true, 'and it stays the end')
    }
  })
})

export const crowdRows = [oneSignal, queued]
