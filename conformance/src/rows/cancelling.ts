/** INV-10: a cancelled put or read ends at once, tells its producer once, and leaves nothing open. */
import { accepts, bytesOf, longLength, tierLengths } from '../content.js'
import { becomes, equal, holds, present, refuses, sameBytes, settled } from '../expect.js'
import { PRODUCERS, stallingAfter } from '../failing.js'
import { over, row } from '../row.js'
import { iterate } from '../sources.js'
import { expectEntries, expectNoResidue } from '../sweeping.js'
import { tapped, watch } from '../tap.js'

/** Aborts at the nth point it passes; points are the engine calls and the pulls of a put. */
function abortAt(nth: number) {
  const controller = new AbortController()
  const reason = new Error(`cancelled at point ${nth}`)
  let passed = 0
  const point = () => {
    passed += 1
    if (passed === nth) controller.abort(reason)
  }
  return { signal: controller.signal, reason, point, fired: () => passed >= nth }
}

/**
 * Contract stamp: docs/spec/store-api.md#putting
 * Contract stamp: docs/spec/engine-contract.md#stages
 */
const abortEverywhere = row({
  name: 'a_put_aborted_at_any_point_is_whole_or_leaves_nothing',
  statement:
    'Aborted before or after any engine call or pull, a put either resolves with a whole entry or rejects with the reason and no trace.',
  stamps: ['docs/spec/store-api.md#putting', 'docs/spec/engine-contract.md#stages'],
  invariant: 'INV-10',
  cases: ['O52'],
  async run(factory) {
    let current: ReturnType<typeof abortAt> | undefined
    const point = () => current?.point()
    const store = await factory.open({ wrap: watch({ before: point, after: point }) })
    for (const length of tierLengths(factory)) {
      for (let nth = 1; ; nth += 1) {
        const bytes = bytesOf(length, 1000 + nth)
        const abort = abortAt(nth)
        const source = async function* () {
          for (let at = 0; at < length; at += 200) {
            abort.point()
            yield bytes.slice(at, at + 200)
          }
          abort.point()
        }
        current = abort
        const end = await settled(store.put(source(), { signal: abort.signal }))
        current = undefined
        if ('value' in end) {
          const blob = present(await store.get(end.value.key), `a put that resolved (point ${nth}) has its entry`)
          sameBytes(await blob.bytes(), bytes, `a put that resolved (point ${nth}) is whole`)
          await end.value.release()
          await store.delete(end.value.key)
        } else equal(end.error, abort.reason, `a put aborted at point ${nth} rejects with the reason itself`)
        await store.maintain()
        await expectEntries(store, 0, `no entry is left of a put aborted at point ${nth}`)
        await expectNoResidue(store, `nothing is left of a put aborted at point ${nth}`)
        if (!abort.fired()) break
      }
    }
    await store.close()
    await factory.teardown()
  }
})

// O52
/**
 * Contract stamp: docs/spec/store-api.md#putting
 */
const producerTold = row({
  name: 'a_put_that_fails_tells_its_producer_exactly_once',
  statement:
    'An aborted or refused put ends its producer exactly once; with a signal aborted before, it pulls nothing.',
  stamps: ['docs/spec/store-api.md#putting'],
  invariant: 'INV-10',
  cases: ['O52'],
  run: over(async (store, factory) => {
    for (const [name, produce] of Object.entries(PRODUCERS)) {
      for (const length of tierLengths(factory)) {
        const bytes = bytesOf(length, 52)
        const before = produce({ bytes, chunkLength: 100, atEnd: () => {} })
        const gone = new Error('gone before')
        await refuses(
          () => store.put(before.content, { signal: AbortSignal.abort(gone) }),
          error => error === gone,
          'aborted before'
        )
        equal(before.endings(), 1, `${name} is told when the signal was aborted before`)
        equal(before.pulls(), 0, `${name} is not pulled when the signal was aborted before`)

        const controller = new AbortController()
        const reason = new Error('gone in between')
        const stalled = produce({ bytes, chunkLength: 100, atEnd: stallingAfter(() => controller.abort(reason)) })
        await refuses(
          () => store.put(stalled.content, { signal: controller.signal }),
          error => error === reason,
          'aborted in mid-pull'
        )
        equal(stalled.endings(), 1, `${name} is told when it is aborted in mid-pull`)

        const refused = produce({ bytes, chunkLength: 100, atEnd: () => {} })
        await refuses(
          () => store.put(refused.content, { maxLength: 50 }),
          'ERR_BLOB_TOO_LARGE',
          'refused for its length'
        )
        equal(refused.endings(), 1, `${name} is told when the put is refused`)

        const declared = produce({ bytes, chunkLength: 100, atEnd: () => {} })
        await refuses(
          () => store.put(declared.content, { length, maxLength: 50 }),
          'ERR_BLOB_TOO_LARGE',
          'refused for its declared length'
        )
        equal(declared.endings(), 1, `${name} is told when its declared length is refused`)

        const late = new AbortController()
        const last = produce({ bytes, chunkLength: 100, atEnd: () => late.abort(reason) })
        const end = await settled(store.put(last.content, { signal: late.signal }))
        equal(last.endings(), 1, `${name} that has ended is not told twice`)
        if ('value' in end) {
          await end.value.release()
          await store.delete(end.value.key)
        }
      }
    }
    await store.maintain()
    await expectEntries(store, 0, 'nothing of a failed put is stored')
    await expectNoResidue(store, 'nothing of a failed put is left')
  })
})

// O53
/**
 * Contract stamp: docs/spec/store-api.md#putting
 */
const backpressure = row({
  name: 'a_slow_medium_stops_its_producer',
  statement:
    'While the medium is busy with a chunk the producer is not asked for more than a few: memory is bounded, not the content.',
  stamps: ['docs/spec/store-api.md#putting'],
  invariant: 'INV-10',
  needs: ['dual-tier'],
  cases: ['O53'],
  async run(factory) {
    const chunkLength = 64 * 1024
    const chunks = 200
    let pulled = 0
    let written = 0
    let ahead = 0
    const slow = (definition: Parameters<typeof tapped>[0]) =>
      tapped(definition, {
        writer: inner => ({
          async write(chunk) {
            // Turns of the event loop in which an eager reader would read on.
            for (let turn = 0; turn < 5; turn += 1) await new Promise<void>(done => setImmediate(done))
            await inner.write(chunk)
            written += chunk.length
          }
        })
      })
    const store = await factory.open({ wrap: slow })
    const source = async function* () {
      for (let at = 0; at < chunks; at += 1) {
        pulled += chunkLength
        ahead = Math.max(ahead, pulled - written)
        yield bytesOf(chunkLength, at)
      }
    }
    const receipt = await store.put(source())
    equal(receipt.length, chunks * chunkLength, 'everything was stored')
    const bound = (factory.threshold ?? 0) + 2 * 1024 * 1024 + 8 * chunkLength
    holds(
      ahead <= bound,
      'the producer is at most the threshold and a few chunks ahead',
      `${ahead} bytes ahead, not ${bound}`
    )
    await store.close()
    await factory.teardown()
  }
})

// O43
/**
 * Contract stamp: docs/spec/store-api.md#reading
 * Contract stamp: docs/spec/engine-contract.md#body-store
 * Contract stamp: docs/adr/006-read-path.md#decision
 */
const cancelledReads = row({
  name: 'a_read_that_is_abandoned_closes_the_medium',
  statement:
    'A blob that is never read opens nothing; one left in the middle, cancelled or aborted closes what it opened.',
  stamps: [
    'docs/spec/store-api.md#reading',
    'docs/spec/engine-contract.md#body-store',
    'docs/adr/006-read-path.md#decision'
  ],
  invariant: 'INV-10',
  cases: ['O43', 'O52'],
  async run(factory) {
    let open = 0
    const counting = (definition: Parameters<typeof tapped>[0]) =>
      tapped(definition, {
        bodies: inner => ({
          async *read(...args: Parameters<typeof inner.read>) {
            open += 1
            try {
              yield* inner.read(...args)
            } finally {
              open -= 1
            }
          }
        })
      })
    const store = await factory.open({ wrap: counting })
    const { key } = await store.put(iterate([bytesOf(longLength(factory), 43)]))
    const handles = async () => (await factory.medium?.(store).handles?.()) ?? 0
    await present(await store.get(key), 'the entry is there').bytes()
    const baseline = await handles()
    const ways: Readonly<Record<string, () => Promise<unknown>>> = {
      'never read': async () => present(await store.get(key), 'the entry is there').stream(),
      'left after one chunk': async () => {
        for await (const _ of present(await store.get(key), 'the entry is there')) break
      },
      'cancelled before the first read': async () =>
        present(await store.get(key), 'the entry is there')
          .stream()
          .cancel(),
      'cancelled after one read': async () => {
        const reader = present(await store.get(key), 'the entry is there')
          .stream()
          .getReader()
        await reader.read()
        await reader.cancel()
      },
      'aborted after one chunk': async () => {
        const controller = new AbortController()
        const reason = new Error('no longer wanted')
        const blob = present(await store.get(key, { signal: controller.signal }), 'the entry is there')
        const iterator = blob[Symbol.asyncIterator]()
        await iterator.next()
        controller.abort(reason)
        // A body that came in one piece has nothing left to reject.
        const end = await settled(Promise.resolve(iterator.next()))
        if ('error' in end) equal(end.error, reason, 'an aborted read rejects with the reason itself')
        else equal(end.value.done, true, 'an aborted read yields nothing more')
      }
    }
    for (const [how, way] of Object.entries(ways)) {
      for (let time = 0; time < 50; time += 1) await way()
      // A cancelled read may reject before its body has closed; it closes without anybody's further help.
      await becomes(async () => open === 0, `no body is open after 50 reads that were ${how}`)
      await becomes(async () => (await handles()) === baseline, `no handle is open after 50 reads that were ${how}`)
    }
    await store.close()
    await factory.teardown()
  }
})

// O45: a stalled put is ended by nobody but its signal.
/**
 * Contract stamp: docs/spec/store-api.md#opening
 */
const waitingPut = row({
  name: 'a_put_waiting_for_its_producer_is_not_a_timeout',
  statement:
    'A producer slower than the operation timeout is waited for: the timeout bounds the medium, never user code.',
  stamps: ['docs/spec/store-api.md#opening'],
  invariant: 'INV-10',
  async run(factory) {
    // Long enough for any call of a busy machine, short enough to wait for.
    const timeoutMs = 1_000
    const store = await factory.open({ operationTimeoutMs: timeoutMs })
    const lengths = tierLengths(factory).filter(length => accepts(factory, length))
    // Side by side: each does nothing but wait.
    const putSlowly = async (length: number) => {
      const bytes = bytesOf(length, 60)
      const source = async function* () {
        yield bytes.slice(0, length - 1)
        // Longer than the timeout by the clock that the store itself reads; a timer alone may fire early by that clock.
        for (const end = performance.now() + 1.2 * timeoutMs; performance.now() < end; )
          await new Promise<void>(done => setTimeout(done, 10))
        yield bytes.slice(length - 1)
      }
      const { key } = await store.put(source())
      const stored = await present(await store.get(key), 'the entry is there').bytes()
      sameBytes(stored, bytes, 'a slow producer is stored whole')
    }
    await Promise.all(lengths.map(putSlowly))
    await store.close()
    await factory.teardown()
  }
})

export const cancellingRows = [abortEverywhere, producerTold, backpressure, cancelledReads, waitingPut]
