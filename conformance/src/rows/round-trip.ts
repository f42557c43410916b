/** INV-1: what goes in comes out, whatever carried it. */
import { InvalidContent } from '../codes.js'
import { bytesOf, contentMatrix, tierLengths } from '../content.js'
import { equal, present, refuses, sameBytes } from '../expect.js'
import { over, row } from '../row.js'
import { iterate, PUT_PATHS, sourcesOf } from '../sources.js'
import { collect, expectEntries, sourceOver } from '../sweeping.js'

/**
 * Contract stamp: docs/spec/store-api.md#putting
 * Contract stamp: docs/spec/store-api.md#reading
 * Contract stamp: docs/adr/002-derivation.md#decision
 */
const byteIdentical = row({
  name: 'round_trip_puts_and_gets_are_byte_identical',
  statement: 'Whatever is put, by either path and in any chunking, is read back byte for byte, whole and as a stream.',
  stamps: ['docs/spec/store-api.md#putting', 'docs/spec/store-api.md#reading', 'docs/adr/002-derivation.md#decision'],
  invariant: 'INV-1',
  run: over(async (store, factory) => {
    for (const { name, bytes } of contentMatrix(factory)) {
      const keys = new Set<string>()
      for (const path of PUT_PATHS) {
        const what = `${name} put as ${path.name}`
        const receipt = await path.put(store, bytes)
        keys.add(receipt.key)
        equal(receipt.length, bytes.length, `${what}: the receipt tells the length`)
        const blob = present(await store.get(receipt.key), `${what} is there`)
        equal(blob.size, bytes.length, `${what}: size`)
        sameBytes(await blob.bytes(), bytes, `${what} is read back whole`)
        const chunks: Uint8Array[] = []
        for await (const chunk of blob) chunks.push(chunk)
        sameBytes(Buffer.concat(chunks), bytes, `${what} is read back as a stream`)
        await receipt.release()
      }
      equal(keys.size, 1, `${name} has one key on every put path`)
    }
  })
})

/**
 * Contract stamp: docs/spec/store-api.md#content
 * Contract stamp: docs/adr/002-derivation.md#decision
 */
const everySource = row({
  name: 'every_source_type_and_chunking_gives_one_key',
  statement: 'The same bytes give the same key from every content type and chunking, on each tier.',
  stamps: ['docs/spec/store-api.md#content', 'docs/adr/002-derivation.md#decision'],
  invariant: 'INV-1',
  run: over(async (store, factory) => {
    for (const length of [0, 1, ...tierLengths(factory)]) {
      const bytes = bytesOf(length, 31)
      const expected = (await store.put(bytes)).key
      for (const source of sourcesOf(bytes)) {
        const receipt = await store.put(source.make())
        equal(receipt.key, expected, `${length} bytes from ${source.name} have the key of the bytes`)
        equal(receipt.created, false, `${length} bytes from ${source.name} are there already`)
      }
    }
  })
})

// The first bytes of the published vectors: BLAKE3's own test vectors (input 0, 1, 2, …) and FIPS 180-2 for SHA-256.
const VECTORS = {
  blake3: {
    '': 'af1349b9f5f9a1a6a0404dea36dcc9499bcb25c9adc112b7cc9a93cae41f3262',
    abc: '6437b3ac38465133ffb63b75273a8db548c558465d79db03fd359c6cd5bd9d85'
  },
  sha256: {
    '': 'e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855',
    abc: 'ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad'
  }
} as const

/**
 * Contract stamp: docs/adr/002-derivation.md#decision
 */
const publishedVectors = row({
  name: 'keys_are_the_published_digests_of_the_derivation',
  statement: 'A key is the algorithm and the standard digest of the content, for both derivations.',
  stamps: ['docs/adr/002-derivation.md#decision'],
  invariant: 'INV-1',
  async run(factory) {
    for (const derivation of ['blake3', 'sha256'] as const) {
      const store = await factory.open({ derivation })
      equal(store.algorithm, derivation, 'the store tells its derivation')
      for (const [text, digest] of Object.entries(VECTORS[derivation])) {
        const receipt = await store.put(text)
        equal(receipt.key, `${derivation}:${digest}`, `${derivation} of ${JSON.stringify(text)}`)
        equal(await present(await store.get(receipt.key), 'the text is there').text(), text, 'the text is read back')
      }
      await store.close()
    }
    await factory.teardown()
  }
})

// O47
/**
 * Contract stamp: docs/spec/store-api.md#content
 * Contract stamp: docs/spec/store-api.md#reading
 */
const emptyBlob = row({
  name: 'the_empty_blob_is_a_blob_like_any_other',
  statement:
    'No bytes are a content: one key from every source, length 0, readable, pinnable, sweepable, never taken for absence.',
  stamps: ['docs/spec/store-api.md#content', 'docs/spec/store-api.md#reading'],
  invariant: 'INV-1',
  cases: ['O47'],
  run: over(async store => {
    const key = `blake3:${VECTORS.blake3['']}`
    equal(await store.has(key), false, 'the empty blob is absent before it was put')
    const receipts = []
    for (const source of sourcesOf(new Uint8Array(0))) receipts.push(await store.put(source.make()))
    receipts.push(await store.put(iterate([]), { length: 0 }))
    for (const receipt of receipts) equal(receipt.key, key, 'every empty source has the key of no bytes')
    equal(receipts.filter(({ created }) => created).length, 1, 'one of the empty puts made the entry')
    equal(present(await store.stat(key), 'the empty blob has a record').length, 0, 'its length')
    equal(present(await store.stat(key), 'the empty blob has a record').tier, 'kv', 'no bytes never go to a large tier')
    const blob = present(await store.get(key), 'the empty blob is found')
    equal((await blob.bytes()).length, 0, 'bytes()')
    equal(await blob.text(), '', 'text()')
    equal((await blob.slice(0, 0).bytes()).length, 0, 'slice(0, 0)')
    equal((await blob.slice(0, 10).bytes()).length, 0, 'slice(0, 10)')
    for await (const chunk of blob) equal(chunk.length, 0, 'a stream of nothing yields nothing')
    await present(await store.pin(key), 'the empty blob can be pinned').release()
    for (const receipt of receipts) await receipt.release()
    await expectEntries(store, 1, 'all empty sources are one entry')
    store.protect(sourceOver([]))
    equal((await collect(store)).deleted, 1, 'an unreferenced empty blob is swept like any other')
    equal(await store.has(key), false, 'and is absent afterwards')
    equal((await store.put('')).created, true, 'and can be put again')
  })
})

const views = (bytes: Uint8Array): readonly { name: string; view: ArrayBufferView }[] => {
  const slab = new Uint8Array(bytes.length + 64).fill(0xee)
  slab.set(bytes, 8)
  const buffer = slab.buffer
  return [
    { name: 'a Buffer from the pool', view: Buffer.from(bytes) },
    { name: 'a subarray', view: slab.subarray(8, 8 + bytes.length) },
    { name: 'a Buffer over a slab', view: Buffer.from(buffer, 8, bytes.length) },
    { name: 'a DataView', view: new DataView(buffer, 8, bytes.length) },
    { name: 'a Uint16Array', view: new Uint16Array(buffer, 8, bytes.length / 2) },
    { name: 'a Float64Array', view: new Float64Array(buffer, 8, bytes.length / 8) },
    { name: 'an Int8Array', view: new Int8Array(buffer, 8, bytes.length) }
  ]
}

// O49
/**
 * Contract stamp: docs/spec/store-api.md#content
 */
const slabViews = row({
  name: 'a_view_stores_exactly_the_bytes_it_covers',
  statement: 'Any view of memory counts as the bytes from its offset over its length, at any alignment.',
  stamps: ['docs/spec/store-api.md#content'],
  invariant: 'INV-1',
  cases: ['O49'],
  run: over(async (store, factory) => {
    for (const length of tierLengths(factory).map(length => length - (length % 8))) {
      const bytes = bytesOf(length, 5)
      const { key } = await store.put(bytes)
      for (const { name, view } of views(bytes)) {
        const receipt = await store.put(view as Uint8Array<ArrayBuffer>)
        equal(receipt.key, key, `${name} of ${length} bytes has the key of the bytes it covers`)
        equal(receipt.length, length, `${name}: the length in bytes`)
      }
      for (let offset = 1; offset <= 8; offset += 1) {
        const slab = new Uint8Array(length + 16).fill(0xaa)
        slab.set(bytes, offset)
        const receipt = await store.put(slab.subarray(offset, offset + length))
        equal(receipt.key, key, `a view at byte offset ${offset} has the key of the bytes it covers`)
      }
      sameBytes(
        await present(await store.get(key), 'the entry is there').bytes(),
        bytes,
        'the stored bytes are those bytes'
      )
    }
  })
})

/**
 * Contract stamp: docs/spec/store-api.md#content
 * Contract stamp: docs/spec/store-api.md#errors
 */
const detached = row({
  name: 'a_detached_buffer_is_refused',
  statement: 'A buffer that was transferred away is refused with a typed error; nothing is stored.',
  stamps: ['docs/spec/store-api.md#content', 'docs/spec/store-api.md#errors'],
  invariant: 'INV-8',
  cases: ['O49'],
  run: over(async store => {
    const bytes = bytesOf(64)
    structuredClone(bytes, { transfer: [bytes.buffer] })
    await refuses(() => store.put(bytes), InvalidContent, 'a detached view is refused')
    await refuses(() => store.put(bytes.buffer), InvalidContent, 'a detached ArrayBuffer is refused')
    await expectEntries(store, 0, 'nothing was stored')
  })
})

export const roundTripRows = [byteIdentical, everySource, publishedVectors, emptyBlob, slabViews, detached]
