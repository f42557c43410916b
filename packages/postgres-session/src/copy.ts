/**
 * COPY to the server, where the driver can be trusted with the beginning only.
 *
 * Its stream swallows an error that comes when everything has been sent, and copies each chunk twice. So the driver starts the copy and
 * ends it, and tells its outcome to us instead of to a promise that has long been resolved with a stream. In between chunks go to the
 * socket as `CopyData` frames (`d`, length, bytes), each when the one before has left.
 */
import type { Socket } from 'node:net'
import type { Writable } from 'node:stream'
import type { DriverQuery } from './driver.js'

/** What a copy needs of its connection. */
interface Lane {
  readonly socket: Socket
  until<T>(work: PromiseLike<T>): Promise<T>
}

const COPY_DATA = 'd'.charCodeAt(0)
/** A frame's length is a signed 32-bit number; far below it, memory is the limit. */
const CHUNK_LENGTH_MAX = 64 * 1024 * 1024

/** The two moments of a copy: it has begun and there is a stream, and the server has said how it ended. */
interface Course {
  readonly begun: Promise<Writable>
  readonly ended: Promise<unknown>
  /** What the server refused, as soon as it has. */
  readonly failure: { readonly error: unknown } | undefined
}

/** Puts itself where the driver tells the outcome: first it tells the stream, then the answer or an error. */
function begin(query: DriverQuery): Course {
  let failure: { readonly error: unknown } | undefined
  let isBegun = false
  let end: (answer: unknown) => void = () => undefined
  let fail: (error: unknown) => void = () => undefined
  const ended = new Promise<unknown>((resolve, reject) => {
    end = resolve
    fail = reject
  })
  const begun = new Promise<Writable>((resolve, reject) => {
    query.resolve = value => {
      if (isBegun) return end(value)
      isBegun = true
      // Now, not when somebody has awaited it: an error may come in the same piece of what the server says, and the driver
      // destroys its stream with it. The course tells the error.
      const stream = value as Writable
      stream.on('error', () => undefined)
      resolve(stream)
    }
    query.reject = error => {
      failure = { error }
      reject(error)
      fail(error)
    }
  })
  // Whoever awaits the one may never come to the other.
  begun.catch(() => undefined)
  ended.catch(() => undefined)
  query.execute()
  return {
    begun,
    ended,
    get failure() {
      return failure
    }
  }
}

/**
 * Copies chunks to the server; resolves when it has taken them all. A chunk is the caller's again when the next one is asked
 * for. If the producer throws, the copy is called off, and its error is thrown.
 */
export async function copyIn(
  lane: Lane,
  query: DriverQuery,
  chunks: AsyncIterable<Uint8Array> | Iterable<Uint8Array>
): Promise<void> {
  const course = begin(query)
  const stream = await lane.until(course.begun)
  try {
    for await (const chunk of chunks) {
      if (course.failure !== undefined) break
      if (chunk.length > CHUNK_LENGTH_MAX) throw new RangeError(`a chunk of more than ${CHUNK_LENGTH_MAX} bytes`)
      if (chunk.length > 0) await lane.until(send(lane.socket, chunk))
    }
  } catch (error) {
    // The server answers with an error of its own, which nobody needs to hear; after it the session is free again.
    stream.destroy(new Error('called off'))
    await lane.until(course.ended).catch(() => undefined)
    throw error
  }
  if (course.failure === undefined) stream.end()
  await lane.until(course.ended)
}

function send(socket: Socket, chunk: Uint8Array): Promise<void> {
  const head = Buffer.allocUnsafe(5)
  head[0] = COPY_DATA
  head.writeInt32BE(chunk.length + 4, 1)
  return new Promise((resolve, reject) => {
    socket.cork()
    socket.write(head)
    socket.write(chunk, error => (error ? reject(error) : resolve()))
    socket.uncork()
  })
}
