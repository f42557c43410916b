/** INV-3: a put either makes exactly one entry or leaves nothing at all. */
import { Readable } from 'node:stream'
import { InvalidContent, KeyMismatch, LengthMismatch, TooLarge } from '../codes.js'
import { accepts, bytesOf, longLength, tierLengths } from '../content.js'
import { equal, holds, present, refuses, settled } from '../expect.js'
import type { StoreFactory } from '../factory.js'
import { PRODUCERS, throwing } from '../failing.js'
import { over, row } from '../row.js'
import { iterate, PUT_PATHS, webStream } from '../sources.js'
import { expectCollected, expectEntries, expectNoResidue, sourceOver } from '../sweeping.js'

const boom = new Error('the producer failed')
const isBoom = (error: unknown) => error === boom || (error as { cause?: unknown }).cause === boom

/** Lengths after which a source may fail: nothing, a byte, around the threshold, several windows. */
function failurePoints(factory: StoreFactory): readonly number[] {
  const threshold = factory.threshold ?? 4096
  return [0, 1, threshold - 1, threshold, threshold + 1, longLength(factory)].filter(length => accepts(factory, length))
}

/**
 * Contract stamp: docs/spec/store-api.md#putting
 * Contract stamp: docs/spec/engine-contract.md#stages
 * Contract stamp: docs/adr/010-engine-contract.md#decision
 */
const zeroResidue = row({
  name: 'stage_hygiene_zero_residue_on_failure_exactly_one_entry_on_success',
  statement:
    'A put that is discarded or fails leaves no stage and no entry; one that succeeds leaves exactly one entry.',
  stamps: [
    'docs/spec/store-api.md#putting',
    'docs/spec/engine-contract.md#stages',
    'docs/adr/010-engine-contract.md#decision'
  ],
  invariant: 'INV-3',
  run: over(async (store, factory) => {
    store.protect(sourceOver([]))
    for (const length of failurePoints(factory)) {
      const bytes = bytesOf(length, 3)
      const writer = store.writer()
      if (length > 0) await writer.write(bytes)
      await writer.discard()
      await refuses(
        () => writer.commit(),
        () => true,
        'a discarded writer commits nothing'
      )
      const script = { bytes, chunkLength: 5000, atEnd: throwing(boom) }
      await refuses(
        () => store.put(PRODUCERS['an async iterable']?.(script).content ?? ''),
        isBoom,
        'a staged put fails'
      )
      const failing = PRODUCERS['an async iterable']?.(script).content ?? ''
      const declared = accepts(factory, length + 1) ? length + 1 : length
      await refuses(() => store.put(failing, { length: declared }), isBoom, 'a whole put fails')
      await expectEntries(store, 0, `failing after ${length} bytes makes no entry`)
      await expectNoResidue(store, `failing after ${length} bytes leaves nothing`)
      await expectCollected(store, 0, 0, 'there is nothing to collect after failures')
      for (const path of PUT_PATHS) {
        await (await path.put(store, bytes)).release()
        await expectCollected(store, 1, length, `a success of ${length} bytes is exactly one entry`)
      }
      await expectNoResidue(store, 'successes leave nothing but their entries')
    }
  })
})

// O45
/**
 * Contract stamp: docs/spec/store-api.md#putting
 * Contract stamp: docs/spec/store-api.md#content
 */
const failingSources = row({
  name: 'a_source_that_fails_or_stops_commits_nothing',
  statement:
    'A source that throws, is destroyed, cancelled, or was used up before rejects the put with its cause; no prefix is stored.',
  stamps: ['docs/spec/store-api.md#putting', 'docs/spec/store-api.md#content'],
  invariant: 'INV-3',
  cases: ['O45'],
  run: over(async (store, factory) => {
    for (const length of failurePoints(factory)) {
      for (const [name, produce] of Object.entries(PRODUCERS)) {
        const { content } = produce({ bytes: bytesOf(length, 4), chunkLength: 9000, atEnd: throwing(boom) })
        await refuses(() => store.put(content), isBoom, `${name} that fails after ${length} bytes`)
      }
      let destroy = () => {}
      const script = { bytes: bytesOf(length, 4), chunkLength: 9000, atEnd: () => destroy() }
      const { content } = present(PRODUCERS['a Readable'], 'a kind of producer')(script)
      destroy = () => void (content as Readable).destroy()
      await refuses(
        () => store.put(content),
        () => true,
        'a Readable destroyed without an error'
      )
    }
    const destroyed = Readable.from([bytesOf(10)]).destroy()
    await refuses(
      () => store.put(destroyed),
      () => true,
      'a Readable that was destroyed before'
    )
    const used = Readable.from([bytesOf(10)])
    for await (const _ of used);
    await refuses(
      () => store.put(used),
      () => true,
      'a Readable that was consumed before'
    )
    const web = webStream([bytesOf(10)])
    await web.cancel()
    // A cancelled web stream answers "done", as an empty one does: then it is the empty blob, and never a prefix.
    const cancelled = await settled(store.put(web))
    if ('value' in cancelled) {
      equal(cancelled.value.length, 0, 'of a cancelled web stream no byte is stored')
      await cancelled.value.release()
      await store.delete(cancelled.value.key)
    }
    const locked = webStream([bytesOf(10)])
    locked.getReader()
    await refuses(() => store.put(locked), InvalidContent, 'a web stream that somebody else reads')
    await expectEntries(store, 0, 'no prefix became an entry')
    await expectNoResidue(store, 'nothing is left of failing sources')
  })
})

// O46
/**
 * Contract stamp: docs/spec/store-api.md#putting
 * Contract stamp: docs/spec/store-api.md#errors
 */
const declaredLength = row({
  name: 'a_declared_length_that_is_wrong_leaves_nothing',
  statement:
    'A stream that ends short or runs long of its declared length is refused, soon, and nothing of it is kept.',
  stamps: ['docs/spec/store-api.md#putting', 'docs/spec/store-api.md#errors'],
  invariant: 'INV-8',
  cases: ['O46'],
  run: over(async (store, factory) => {
    const threshold = factory.threshold ?? 4096
    for (const declared of [1, 100, threshold - 1, threshold, threshold + 1].filter(length =>
      accepts(factory, length)
    )) {
      for (const actual of [0, declared - 1, declared + 1, 2 * declared]) {
        if (actual === declared) continue
        const property = `${actual} bytes declared as ${declared}`
        const content = iterate([bytesOf(actual, 6)])
        await refuses(() => store.put(content, { length: declared }), LengthMismatch, property)
      }
      const script = { bytes: bytesOf(declared + 40_000, 6), chunkLength: 1000, atEnd: () => {} }
      const producer = present(PRODUCERS['an async iterable']?.(script), 'a producer')
      await refuses(() => store.put(producer.content, { length: declared }), LengthMismatch, 'a source that runs long')
      holds(
        producer.pulls() <= declared / 1000 + 2,
        'an over-long source is stopped, not drained',
        `${producer.pulls()} pulls`
      )
      equal(producer.endings(), 1, 'an over-long source is told once that it is over')
    }
    await expectEntries(store, 0, 'nothing of a wrong length is stored')
    await expectNoResidue(store, 'nothing of a wrong length is left')
  })
})

// O50
/**
 * Contract stamp: docs/spec/store-api.md#content
 * Contract stamp: docs/spec/store-api.md#errors
 */
const badChunks = row({
  name: 'every_chunk_that_is_not_bytes_is_refused',
  statement:
    'Strings, objects, arrays and other values in a stream are refused by type; nothing is re-encoded or stored.',
  stamps: ['docs/spec/store-api.md#content', 'docs/spec/store-api.md#errors'],
  invariant: 'INV-8',
  cases: ['O50'],
  run: over(async (store, factory) => {
    const bad: readonly unknown[] = [
      'text',
      {},
      [1, 2],
      7,
      true,
      undefined,
      null,
      new ArrayBuffer(2),
      new Date(0),
      () => {},
      Symbol('s'),
      1n
    ]
    for (const length of [0, ...tierLengths(factory)]) {
      for (const chunk of bad) {
        let ended = 0
        const source = async function* () {
          try {
            if (length > 0) yield bytesOf(length, 8)
            yield chunk as Uint8Array
            yield bytesOf(1)
          } finally {
            ended += 1
          }
        }
        await refuses(
          () => store.put(source()),
          InvalidContent,
          `a chunk of type ${typeof chunk} after ${length} bytes`
        )
        equal(ended, 1, 'the producer of a bad chunk is told')
      }
    }
    const text = Readable.from([Buffer.from([0xff, 0x00])], { encoding: 'utf8' })
    await refuses(() => store.put(text), InvalidContent, 'a Readable that decodes to text')
    await refuses(() => store.put(Readable.from(['a', 'b'])), InvalidContent, 'a Readable of strings')
    for (const content of [undefined, null, 5, {}, [1, 2], Symbol('s'), () => {}]) {
      await refuses(() => store.put(content as never), InvalidContent, `content of type ${typeof content}`)
    }
    await expectEntries(store, 0, 'nothing that is not bytes is stored')
    await expectNoResidue(store, 'nothing is left of bad chunks')
  })
})

/**
 * Contract stamp: docs/spec/store-api.md#putting
 * Contract stamp: docs/spec/store-api.md#errors
 */
const expectedKey = row({
  name: 'an_expected_key_that_does_not_match_stores_nothing',
  statement:
    'A put that promised another key is refused on every put path, leaves nothing, and spares an entry that was there.',
  stamps: ['docs/spec/store-api.md#putting', 'docs/spec/store-api.md#errors'],
  invariant: 'INV-8',
  run: over(async (store, factory) => {
    for (const length of tierLengths(factory)) {
      const promised = await store.put(bytesOf(length, 40))
      for (const path of PUT_PATHS) {
        const lie = () => path.put(store, bytesOf(length, 41), { expect: promised.key })
        await refuses(lie, KeyMismatch, `${path.name} of other content than promised`)
        const kept = await path.put(store, bytesOf(length, 40), { expect: promised.key })
        equal(kept.created, false, `${path.name} of the promised content`)
        await kept.release()
      }
      await refuses(
        () => store.put(bytesOf(length, 41), { expect: 'blake3:short' }),
        'ERR_BLOB_INVALID_KEY',
        'a promise that is no key'
      )
    }
    await expectEntries(store, tierLengths(factory).length, 'only what was promised is stored')
    const { stages, trash } = await store.usage()
    equal({ stages, trash }, { stages: 0, trash: 0 }, 'a broken promise leaves nothing')
  })
})

/**
 * Contract stamp: docs/spec/store-api.md#limits
 * Contract stamp: docs/spec/store-api.md#putting
 */
const maxLength = row({
  name: 'content_past_max_length_is_refused_and_nothing_kept',
  statement:
    "A put longer than its own or the store's limit is refused: before reading where the length is known, else at the limit.",
  stamps: ['docs/spec/store-api.md#limits', 'docs/spec/store-api.md#putting'],
  invariant: 'INV-8',
  async run(factory) {
    const store = await factory.open({ maxLength: 1000 })
    for (const [maxLength, length] of [
      [undefined, 1001],
      [10, 11],
      [0, 1]
    ] as const) {
      const options = maxLength === undefined ? {} : { maxLength }
      for (const path of PUT_PATHS) {
        await refuses(
          () => path.put(store, bytesOf(length), options),
          TooLarge,
          `${path.name} of ${length} bytes is too long`
        )
      }
      const script = { bytes: bytesOf(length), chunkLength: 1, atEnd: () => {} }
      const known = present(PRODUCERS['an async iterable']?.(script), 'a producer')
      await refuses(() => store.put(known.content, { ...options, length }), TooLarge, 'a known length past the limit')
      equal(known.pulls(), 0, 'a known length past the limit is refused before a byte is read')
      const unknown = present(PRODUCERS['an async iterable']?.(script), 'a producer')
      await refuses(() => store.put(unknown.content, options), TooLarge, 'a stream past the limit')
      holds(unknown.pulls() <= length, 'a stream past the limit is stopped there', `${unknown.pulls()} pulls`)
    }
    await expectEntries(store, 0, 'nothing too long is stored')
    await expectNoResidue(store, 'nothing too long is left')
    equal((await store.put(bytesOf(1000))).length, 1000, 'the limit itself is accepted')
    await store.close()
    await factory.teardown()
  }
})

export const hygieneRows = [zeroResidue, failingSources, declaredLength, badChunks, expectedKey, maxLength]
