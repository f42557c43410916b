/**
 * What may be put, turned into one of two shapes: bytes that lie in memory, or a producer that is pulled.
 *
 * A producer is asked for one chunk at a time and told exactly once when no more are wanted; a chunk is anything that
 * is a Uint8Array and nothing else, since re-encoding text or objects by guess is how content gets lost.
 */
import { Readable } from 'node:stream'
import { types } from 'node:util'
import { InvalidContentError } from './errors.js'

/** Everything `put` takes. A string is its UTF-8 bytes; a view is the bytes that it covers. */
export type BlobContent =
  | ArrayBufferView
  | ArrayBuffer
  | string
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>
  | Readable

/** Pulled by core; the chunk belongs to the producer again once the next one is asked for. */
export interface Producer {
  next(): Promise<IteratorResult<unknown>>
  /** Tells the producer that nobody wants more. Settles when it has cleaned up. */
  cancel(reason: unknown): Promise<unknown>
}

export type Content =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array }
  | { readonly kind: 'stream'; readonly producer: Producer; readonly length: number | undefined }

/** @throws InvalidContentError (`ERR_BLOB_INVALID_CONTENT`), naming what was given instead. */
export function contentOf(value: unknown): Content {
  if (typeof value === 'string') return { kind: 'bytes', bytes: Buffer.from(value, 'utf8') }
  if (ArrayBuffer.isView(value)) return { kind: 'bytes', bytes: bytesOfView(value) }
  if (types.isAnyArrayBuffer(value)) return { kind: 'bytes', bytes: bytesOfBuffer(value) }
  if (value instanceof Blob) return { kind: 'stream', producer: ofWebStream(value.stream()), length: value.size }
  if (value instanceof ReadableStream) return { kind: 'stream', producer: ofWebStream(value), length: undefined }
  if (value instanceof Readable) return { kind: 'stream', producer: ofReadable(value), length: undefined }
  if (isAsyncIterable(value)) return { kind: 'stream', producer: ofIterable(value), length: undefined }
  throw new InvalidContentError(
    `content must be bytes, a string, a Blob or a stream of Uint8Array, not ${nameOf(value)}`
  )
}

/** @throws InvalidContentError for anything but a Uint8Array whose memory is still there. */
export function chunkOf(value: unknown): Uint8Array {
  if (!types.isUint8Array(value)) {
    throw new InvalidContentError(`a chunk of the content is ${nameOf(value)}; only Uint8Array (or Buffer) is bytes`)
  }
  return bytesOfView(value)
}

function bytesOfView(view: ArrayBufferView): Uint8Array {
  assertAttached(view.buffer)
  return new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
}

function bytesOfBuffer(buffer: ArrayBufferLike): Uint8Array {
  assertAttached(buffer)
  return new Uint8Array(buffer)
}

/** A detached buffer looks empty and would be stored as the empty blob; making a view of one throws. */
function assertAttached(buffer: ArrayBufferLike): void {
  try {
    new Uint8Array(buffer)
  } catch (error) {
    throw new InvalidContentError('the content lies in a buffer that was transferred away (detached)', error)
  }
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && Symbol.asyncIterator in value
}

function ofWebStream(stream: ReadableStream<unknown>): Producer {
  if (stream.locked) throw new InvalidContentError('the stream is locked: something else reads it')
  const reader = stream.getReader()
  return {
    next: async () => {
      const { done, value } = await reader.read()
      return done ? { done, value: undefined } : { done, value }
    },
    cancel: reason => reader.cancel(reason)
  }
}

function ofReadable(stream: Readable): Producer {
  if (stream.errored) throw new InvalidContentError('the stream has failed before it was read', stream.errored)
  if (stream.destroyed || stream.readableEnded)
    throw new InvalidContentError('the stream was used up or destroyed before')
  const iterator = stream[Symbol.asyncIterator]()
  return {
    next: () => iterator.next(),
    // Without an error: the put rejects with the cause, and an 'error' event that nobody listens to would end the process.
    cancel: async () => {
      stream.destroy()
    }
  }
}

function ofIterable(source: AsyncIterable<unknown>): Producer {
  const iterator = source[Symbol.asyncIterator]()
  return {
    next: () => iterator.next(),
    cancel: async () => iterator.return?.()
  }
}

/** What a wrong value is, for messages: its type or class, never its value. */
export function nameOf(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value !== 'object') return typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`
  return `an object (${Object.getPrototypeOf(value)?.constructor?.name ?? 'no class'})`
}
