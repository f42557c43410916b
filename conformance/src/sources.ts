/** Every way to hand the same bytes to `put`: each content type, each chunking. */
import { Readable } from 'node:stream'
import type { BlobContent, PutOptions, PutReceipt, Store } from '@alkblobs/core'

/** Cuts bytes into chunks. The chunks are copies. */
export type Chunking = (bytes: Uint8Array) => Iterable<Uint8Array<ArrayBuffer>>

/** The longest content that is cut into single bytes. */
const PER_BYTE_LENGTH_MAX = 5000

function* cut(bytes: Uint8Array, lengths: (index: number) => number): Iterable<Uint8Array<ArrayBuffer>> {
  for (let at = 0, index = 0; at < bytes.length; index += 1) {
    const end = Math.min(bytes.length, at + lengths(index))
    yield bytes.slice(at, end) as Uint8Array<ArrayBuffer>
    at = end
  }
}

/** The chunkings: one chunk, single bytes (short contents only), ragged, ragged with empty chunks between. */
export const CHUNKINGS: Readonly<Record<string, Chunking>> = {
  'one chunk': bytes => cut(bytes, () => bytes.length),
  'single bytes': bytes => cut(bytes, () => (bytes.length <= PER_BYTE_LENGTH_MAX ? 1 : 4096)),
  'ragged chunks': bytes => cut(bytes, index => [1, 700, 65_536, 13, 1024, 300_001][index % 6] ?? 1),
  *'empty chunks between'(bytes) {
    yield new Uint8Array(0)
    for (const chunk of cut(bytes, index => 999 + 90_000 * (index % 2))) {
      yield chunk
      yield new Uint8Array(0)
    }
  }
}

/** An async iterable over chunks. */
export async function* iterate(chunks: Iterable<Uint8Array<ArrayBuffer>>): AsyncGenerator<Uint8Array<ArrayBuffer>> {
  yield* chunks
}

/** A web stream over chunks. */
export function webStream(chunks: Iterable<Uint8Array<ArrayBuffer>>): ReadableStream<Uint8Array<ArrayBuffer>> {
  const iterator = chunks[Symbol.iterator]()
  return new ReadableStream({
    pull(controller) {
      const step = iterator.next()
      if (step.done) controller.close()
      else controller.enqueue(step.value)
    }
  })
}

/** A source: a name, and a way to make it. Streams are one-shot, so each use makes its own. */
export interface Source {
  readonly name: string
  make(): BlobContent
}

const whole = (bytes: Uint8Array): Source[] => [
  { name: 'Uint8Array', make: () => bytes.slice() },
  { name: 'Buffer', make: () => Buffer.from(bytes) },
  { name: 'ArrayBuffer', make: () => bytes.slice().buffer as ArrayBuffer },
  { name: 'Blob', make: () => new Blob([bytes.slice() as Uint8Array<ArrayBuffer>]) }
]

/** Every content type and chunking that carries exactly these bytes. */
export function sourcesOf(bytes: Uint8Array): readonly Source[] {
  const streams = Object.entries(CHUNKINGS).flatMap(([name, chunked]): Source[] => [
    { name: `async iterable, ${name}`, make: () => iterate(chunked(bytes)) },
    { name: `web stream, ${name}`, make: () => webStream(chunked(bytes)) },
    { name: `Readable, ${name}`, make: () => Readable.from(chunked(bytes), { objectMode: true }) }
  ])
  return [...whole(bytes), ...streams]
}

/** A way to put: the two put paths, and the push form. */
export interface PutPath {
  readonly name: string
  put(store: Store, bytes: Uint8Array, options?: PutOptions): Promise<PutReceipt>
}

const ragged = (bytes: Uint8Array) => iterate((CHUNKINGS['ragged chunks'] as Chunking)(bytes))

/** Whole put of bytes, whole put of a stream whose length is known, staged put, push form. */
export const PUT_PATHS: readonly PutPath[] = [
  { name: 'bytes', put: (store, bytes, options) => store.put(bytes.slice(), options) },
  {
    name: 'a stream of declared length',
    put: (store, bytes, options) => store.put(ragged(bytes), { ...options, length: bytes.length })
  },
  { name: 'a stream', put: (store, bytes, options) => store.put(ragged(bytes), options) },
  {
    name: 'a writer',
    async put(store, bytes, options) {
      const writer = store.writer(options)
      for (const chunk of (CHUNKINGS['ragged chunks'] as Chunking)(bytes)) await writer.write(chunk)
      return await writer.commit()
    }
  }
]
