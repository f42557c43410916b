/** Reads: ranges, shapes, failures of the medium, and bodies that go or move while they are read. */
import { WINDOW_LENGTH } from '@alkblobs/core/engine'
import { accepts, bytesOf, tierLengths } from '../content.js'
import { equal, holds, present, refuses, sameBytes } from '../expect.js'
import { over, row } from '../row.js'
import { iterate } from '../sources.js'

const edges = (size: number): readonly number[] => [
  0,
  1,
  size - 1,
  size,
  size + 1,
  size + 100,
  -1,
  -size,
  -size - 1,
  Math.floor(size / 2),
  1024,
  2 ** 31,
  2 ** 53 - 1,
  -(2 ** 53 - 1),
  Number.POSITIVE_INFINITY,
  Number.NEGATIVE_INFINITY
]

// O51
/**
 * Contract stamp: docs/spec/store-api.md#ranges
 * Contract stamp: docs/adr/006-read-path.md#decision
 */
const rangesClamp = row({
  name: 'ranges_clamp_as_blob_slice_does',
  statement:
    'A range is what `Uint8Array.prototype.slice` gives, at every edge and in every tier; what is no integer is refused by type.',
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
      const bad: readonly (readonly [unknown, string])[] = [
        [Number.NaN, 'RangeError'],
        [1.5, 'RangeError'],
        [-0.5, 'RangeError'],
        [1n, 'TypeError'],
        ['0', 'TypeError'],
        [{}, 'TypeError'],
        [null, 'TypeError']
      ]
      for (const [value, name] of bad) {
        const named = (error: unknown) => (error as Error).name === name
        await refuses(() => blob.slice(value as number, 1), named, `slice(${String(value)}, 1) is a ${name}`)
        await refuses(() => blob.slice(0, value as number), named, `slice(0, ${String(value)}) is a ${name}`)
      }
    }
  })
})

/**
 * Contract stamp: docs/spec/store-api.md#ranges
 * Contract stamp: docs/spec/engine-contract.md#body-store
 * Contract stamp: docs/adr/006-read-path.md#decision
 */
const windows = row({
  name: 'pread_windows_read_committed_files_mid_slices_and_eof_clamped',
  statement: 'Ranges inside, across and at the edges of read windows are exact, and clamped at the end of the body.',
  stamps: [
    'docs/spec/store-api.md#ranges',
    'docs/spec/engine-contract.md#body-store',
    'docs/adr/006-read-path.md#decision'
  ],
  invariant: 'INV-1',
  needs: ['dual-tier', 'root'],
  run: over(async store => {
    const size = 3 * WINDOW_LENGTH + 77
    const bytes = bytesOf(size, 33)
    const { key } = await store.put(iterate([bytes]))
    const blob = present(await store.get(key), 'the entry is there')
    const points = [
      0,
      1,
      WINDOW_LENGTH - 1,
      WINDOW_LENGTH,
      WINDOW_LENGTH + 1,
      2 * WINDOW_LENGTH + 5,
      size - 1,
      size,
      size + 9,
      2 ** 53 - 1
    ]
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

/**
 * Contract stamp: docs/spec/store-api.md#reading
 */
const blobShape = row({
  name: 'a_stored_blob_reads_like_a_web_blob',
  statement:
    'bytes, text, arrayBuffer, stream and iteration give the same content, any number of times, and a byte stream can be read into a buffer.',
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

/** Everything a consumer may do with a chunk that is its own: pass the memory on, so that nobody else sees it any more. */
async function takenFrom(chunks: AsyncIterable<Uint8Array>): Promise<Uint8Array> {
  const taken: Uint8Array[] = []
  for await (const chunk of chunks) taken.push(structuredClone(chunk, { transfer: [chunk.buffer as ArrayBuffer] }))
  return Buffer.concat(taken)
}

/**
 * Contract stamp: docs/spec/store-api.md#reading
 * Contract stamp: docs/spec/engine-contract.md#body-store
 */
const chunksGivenAway = row({
  name: 'a_long_body_is_whole_however_its_chunks_are_consumed',
  statement:
    'A body of several windows ends whole through `stream()` and the iterator, also when the consumer passes the memory of each chunk on.',
  stamps: ['docs/spec/store-api.md#reading', 'docs/spec/engine-contract.md#body-store'],
  invariant: 'INV-1',
  run: over(async (store, factory) => {
    const size = factory.traits.includes('kv-only') ? store.threshold : 3 * WINDOW_LENGTH + 77
    const bytes = bytesOf(size, 34)
    const { key } = await store.put(iterate([bytes]))
    const blob = present(await store.get(key), 'the entry is there')
    sameBytes(new Uint8Array(await new Response(blob.stream()).arrayBuffer()), bytes, 'as a web stream')
    sameBytes(await takenFrom(blob), bytes, 'by the iterator, each chunk passed on')
    sameBytes(await takenFrom(blob.stream()), bytes, 'by the stream, each chunk passed on')
    sameBytes(await takenFrom(blob.slice(1, -1)), bytes.slice(1, -1), 'a range, each chunk passed on')
  })
})

export const readingRows = [rangesClamp, windows, blobShape, chunksGivenAway]
