/** INV-1 and INV-8 where the caller keeps its hands on the memory it handed over. */
import { bytesOf, longLength, tierLengths } from '../content.js'
import { equal, present, sameBytes } from '../expect.js'
import type { OpenTuning } from '../factory.js'
import { over, row } from '../row.js'
import { tapped } from '../tap.js'

const SCRIBBLES: Readonly<Record<string, (scribble: () => void) => unknown>> = {
  'in the same tick': scribble => scribble(),
  'in the next microtask': scribble => Promise.resolve().then(scribble),
  'in the next turn': scribble => new Promise<void>(done => setImmediate(() => done(scribble())))
}

// O48
/**
 * Contract stamp: docs/spec/store-api.md#putting
 */
const mutatedBuffer = row({
  name: 'a_buffer_mutated_by_its_caller_during_put_never_makes_a_wrong_entry',
  statement: 'However the caller changes its buffer while a put runs, the entry under the key holds what the key says.',
  stamps: ['docs/spec/store-api.md#putting'],
  invariant: 'INV-1',
  cases: ['O48'],
  run: over(async (store, factory) => {
    for (const length of [...tierLengths(factory), longLength(factory)]) {
      for (const [when, scribbled] of Object.entries(SCRIBBLES)) {
        const original = bytesOf(length, length + when.length)
        const buffer = original.slice()
        const put = store.put(buffer)
        await scribbled(() => buffer.fill(0xff))
        const receipt = await put
        const stored = await present(await store.get(receipt.key), `the entry is there (changed ${when})`).bytes()
        // Which moment's bytes are stored is the store's choice where they are long; that the key is theirs is not.
        const { key, created } = await store.put(stored)
        equal([key, created], [receipt.key, false], `the key is the one of the stored bytes (changed ${when})`)
        if (length <= 100)
          sameBytes(stored, original, `short bytes are stored as they were handed over (changed ${when})`)
      }
    }
  })
})

async function* refilling(bytes: Uint8Array, chunkLength: number): AsyncGenerator<Uint8Array> {
  const chunk = new Uint8Array(chunkLength)
  for (let at = 0; at < bytes.length; at += chunkLength) {
    const part = bytes.subarray(at, at + chunkLength)
    chunk.set(part)
    yield chunk.subarray(0, part.length)
    // The consumer asked for the next chunk, so the buffer is the producer's again.
    chunk.fill(0xdd)
  }
}

// O48
/**
 * Contract stamp: docs/spec/store-api.md#content
 */
const reusedChunk = row({
  name: 'a_source_that_refills_one_buffer_is_stored_as_it_yielded',
  statement: 'A chunk is copied or consumed before the next one is asked for, so a producer may reuse its buffer.',
  stamps: ['docs/spec/store-api.md#content'],
  invariant: 'INV-1',
  cases: ['O48'],
  run: over(async (store, factory) => {
    for (const length of tierLengths(factory)) {
      for (const chunkLength of [7, 64, 4096]) {
        const bytes = bytesOf(length, chunkLength)
        const receipt = await store.put(refilling(bytes, chunkLength))
        const blob = present(await store.get(receipt.key), 'the entry is there')
        sameBytes(await blob.bytes(), bytes, `${length} bytes from one refilled buffer of ${chunkLength}`)
      }
    }
  })
})

/**
 * Contract stamp: docs/spec/store-api.md#putting
 */
const writerChunk = row({
  name: 'a_chunk_given_to_a_writer_is_the_callers_again_when_write_resolves',
  statement: 'After write resolves the caller may change the chunk; what was written does not change.',
  stamps: ['docs/spec/store-api.md#putting'],
  invariant: 'INV-1',
  cases: ['O48'],
  run: over(async (store, factory) => {
    for (const length of tierLengths(factory)) {
      const bytes = bytesOf(length, 77)
      const writer = store.writer()
      for (let at = 0; at < length; at += 50) {
        const chunk = bytes.slice(at, at + 50)
        await writer.write(chunk)
        chunk.fill(0x11)
      }
      const { key } = await writer.commit()
      sameBytes(await present(await store.get(key), 'the entry is there').bytes(), bytes, 'what was written is stored')
    }
  })
})

// O48
/**
 * Contract stamp: docs/spec/store-api.md#reading
 * Contract stamp: docs/spec/engine-contract.md#catalog
 */
const ownBytes = row({
  name: 'bytes_handed_out_are_the_callers_own',
  statement: 'Whoever changes the bytes a read gave him changes nothing in the pool.',
  stamps: ['docs/spec/store-api.md#reading', 'docs/spec/engine-contract.md#catalog'],
  invariant: 'INV-1',
  cases: ['O48'],
  run: over(async (store, factory) => {
    for (const length of tierLengths(factory)) {
      const bytes = bytesOf(length, 50)
      const { key } = await store.put(bytes)
      const read = async () => present(await store.get(key), 'the entry is there')
      ;(await (await read()).bytes()).fill(0xff)
      sameBytes(await (await read()).bytes(), bytes, 'the pool is as it was after bytes() was overwritten')
      for await (const chunk of await read()) chunk.fill(0xff)
      sameBytes(await (await read()).bytes(), bytes, 'the pool is as it was after streamed chunks were overwritten')
      ;(await (await read()).slice(1, 50).bytes()).fill(0xff)
      sameBytes(
        await (await read()).slice(1, 50).bytes(),
        bytes.slice(1, 50),
        'and so is a range after it was overwritten'
      )
      sameBytes(await (await read()).bytes(), bytes, 'the pool is as it was after a range was overwritten')
      equal((await store.put(bytes)).created, false, 'and the entry still counts as that content')
    }
  })
})

/** Core's memory for bodies, used for something else as soon as the engine has answered. */
const usedAgain: OpenTuning['wrap'] = definition =>
  tapped(definition, {
    catalog: inner => ({
      async publish(items, call) {
        const outcomes = await inner.publish(items, call)
        for (const { bytes } of items) if (bytes.kind === 'inline') bytes.body.fill(0xff)
        return outcomes
      }
    })
  })

/**
 * Contract stamp: docs/spec/engine-contract.md#publish
 */
const bodyMemory = row({
  name: 'a_body_is_the_engines_own_once_its_publication_was_answered',
  statement: 'What the memory of an inline body holds after publish has answered is never what is read.',
  stamps: ['docs/spec/engine-contract.md#publish'],
  invariant: 'INV-1',
  run: over(
    async (store, factory) => {
      const lengths = [...tierLengths(factory), longLength(factory)]
      const contents = lengths.flatMap(length => [bytesOf(length, 91), bytesOf(length, 92)])
      // Some share a transaction, and one has its own.
      const keys = await Promise.all(contents.map(async bytes => (await store.put(bytes)).key))
      contents.push(bytesOf(100, 93))
      keys.push((await store.put(bytesOf(100, 93))).key)
      for (const [i, bytes] of contents.entries()) {
        const blob = present(await store.get(keys[i] as string), 'the entry is there')
        sameBytes(await blob.bytes(), bytes, `${bytes.length} bytes are what was put`)
        equal((await store.put(bytes)).created, false, 'and are found again')
      }
    },
    { wrap: usedAgain }
  )
})

export const callerRows = [mutatedBuffer, reusedChunk, writerChunk, ownBytes, bodyMemory]
