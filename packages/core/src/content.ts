/**
 * What may be put, turned into one of two shapes: bytes that lie in memory, or a producer that is pulled.
 *
 * A producer is asked for one chunk at a time and told exactly once when no more are wanted; a chunk is anything that
 * is a Uint8Array and nothing else, since re-encoding text or objects by guess is how content gets lost.
 */
import { Readable } from 'node:stream'
import { types } from 'node:util'
import { InvalidContentError } from './errors.js'
import { Pull } from './pull.js'

/** Everything `put` takes. A string is its UTF-8 bytes; a view is the bytes that it covers. */
export type BlobContent =
  | ArrayBufferView
  | ArrayBuffer
  | string
  | Blob
  | ReadableStream<Uint8Array>
  | AsyncIterable<Uint8Array>
  | Readable

export type Content =
  | { readonly kind: 'bytes'; readonly bytes: Uint8Array; readonly length: number }
  | { readonly kind: 'stream'; readonly pull: Pull; readonly length: number | undefined }

/** @throws InvalidContentError (`ERR_BLOB_INVALID_CONTENT`), naming what was given instead. */
export function contentOf(value: unknown): Content {
  if (typeof value === 'string') return ofBytes(Buffer.from(value, 'utf8'))
  if (ArrayBuffer.isView(value)) return ofBytes(bytesOfView(value))
  if (types.isAnyArrayBuffer(value)) return ofBytes(bytesOfBuffer(value))
  if (value instanceof Blob) return { kind: 'stream', pull: ofWebStream(value.stream()), length: value.size }
  if (value instanceof ReadableStream) return { kind: 'stream', pull: ofWebStream(value), length: undefined }
  if (value instanceof Readable) return { kind: 'stream', pull: ofReadable(value), length: undefined }
  if (isAsyncIterable(value)) return { kind: 'stream', pull: ofIterable(value), length: undefined }
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

/**
 * A view whose memory was transferred away, or shrank from under it, looks empty and would be stored as the empty blob.
 * `keys` of a typed array, the getters of a DataView and making a view of a buffer throw for such memory.
 */
function bytesOfView(view: ArrayBufferView): Uint8Array {
  return fromMemory(() => {
    if (!(view instanceof DataView)) Uint8Array.prototype.keys.call(view as Uint8Array)
    return new Uint8Array(view.buffer, view.byteOffset, view.byteLength)
  })
}

function bytesOfBuffer(buffer: ArrayBufferLike): Uint8Array {
  return fromMemory(() => new Uint8Array(buffer))
}

/** The length is that of this moment; memory that others may resize is copied in it. */
function ofBytes(bytes: Uint8Array): Content {
  const { buffer, length } = bytes
  const isFixed = buffer instanceof ArrayBuffer && (buffer as { resizable?: boolean }).resizable !== true
  return { kind: 'bytes', bytes: isFixed ? bytes : Buffer.from(bytes), length }
}

/** A part of bytes that are the caller's, who may have transferred or resized the memory away meanwhile: then it is refused. */
export function partOf(bytes: Uint8Array, start: number, end: number): Uint8Array {
  const part = fromMemory(() => bytes.subarray(start, end))
  if (part.length !== end - start) throw memoryTakenAway()
  return part
}

function fromMemory(look: () => Uint8Array): Uint8Array {
  try {
    return look()
  } catch (error) {
    throw memoryTakenAway(error)
  }
}

function memoryTakenAway(cause?: unknown): InvalidContentError {
  return new InvalidContentError('the memory of the content was taken away (a detached or shrunken buffer)', cause)
}

function isAsyncIterable(value: unknown): value is AsyncIterable<unknown> {
  return typeof value === 'object' && value !== null && typeof Reflect.get(value, Symbol.asyncIterator) === 'function'
}

function ofWebStream(stream: ReadableStream<unknown>): Pull {
  if (stream.locked) throw new InvalidContentError('the stream is locked: something else reads it')
  if (wasRead(stream)) throw usedBefore()
  const reader = stream.getReader()
  return new Pull({
    next: async () => {
      const { done, value } = await reader.read()
      return done ? { done, value: undefined } : { done, value }
    },
    cancel: reason => reader.cancel(reason)
  })
}

function ofReadable(stream: Readable): Pull {
  if (stream.errored) throw new InvalidContentError('the stream has failed before it was read', stream.errored)
  if (stream.destroyed || wasRead(stream)) throw usedBefore()
  // The iterator listens from its first step on. A failure before that, or after the put gave up, is not to end the process;
  // the iterator finds it all the same.
  stream.on('error', foundByIterator)
  const iterator = stream[Symbol.asyncIterator]()
  return new Pull({
    next: () => iterator.next(),
    // Without an error: the put rejects with the cause, and an 'error' event that nobody listens to would end the process.
    cancel: async () => {
      stream.destroy()
    }
  })
}

function foundByIterator(): void {}

/** Node's types know the test for streams of its own only; it takes the web's as well. */
function wasRead(stream: Readable | ReadableStream<unknown>): boolean {
  return Readable.isDisturbed(stream as Readable)
}

/** Not only of one read to its end: without its beginning the rest would be stored as if it were the whole. */
function usedBefore(): InvalidContentError {
  return new InvalidContentError('the stream was read from, used up or destroyed before')
}

function ofIterable(source: AsyncIterable<unknown>): Pull {
  const iterator: unknown = source[Symbol.asyncIterator]()
  if (!isIterator(iterator))
    throw new InvalidContentError('the content is no async iterable: its iterator has no next()')
  return new Pull({
    next: () => iterator.next(),
    cancel: async () => iterator.return?.()
  })
}

function isIterator(value: unknown): value is AsyncIterator<unknown> {
  return typeof value === 'object' && value !== null && 'next' in value && typeof value.next === 'function'
}

/** What a wrong value is, for messages: its type or class, never its value. */
export function nameOf(value: unknown): string {
  if (value === null) return 'null'
  if (typeof value !== 'object') return typeof value === 'undefined' ? 'undefined' : `a ${typeof value}`
  const name: unknown = Object.getPrototypeOf(value)?.constructor?.name
  return `an object (${typeof name === 'string' && name !== '' ? name : 'no class'})`
}
