/** `put`: content in any form, to its receipt. */
import { type Content, chunkOf, type Producer } from './content.js'
import { LengthMismatchError } from './errors.js'
import { Interrupt } from './interrupt.js'
import { WINDOW_LENGTH } from './limits.js'
import type { PutRequest } from './put-options.js'
import { assertExpected, type PutParts, PutSession, type Stored, storeInline, tooLarge } from './put-session.js'

/** Longest wait for a producer that was told to stop and has yet to clean up, in milliseconds. */
const CANCEL_GRACE_MS = 1_000

/** How many bytes are hashed between two turns of the event loop. */
const HASH_SLICE_LENGTH = 8 * WINDOW_LENGTH

/**
 * Puts content; `closing` interrupts the wait for a producer. The pool exists already. Bytes up to the threshold must be
 * nobody else's; longer ones may be the caller's.
 */
export function putContent(
  parts: PutParts,
  request: PutRequest,
  content: Content,
  closing: AbortSignal
): Promise<Stored> {
  return content.kind === 'bytes'
    ? putBytes(parts, request, content.bytes)
    : putStream(parts, request, content.producer, closing)
}

/** Refuses, before anything is read, bytes that contradict their options or have no tier. */
export function assertAcceptable({ dispatch }: PutParts, request: PutRequest, length: number): void {
  if (request.length !== undefined && request.length !== length) throw new LengthMismatchError(request.length, length)
  if (length > request.maxLength) throw tooLarge(request.maxLength)
  dispatch.tierOf(length)
}

async function putBytes(parts: PutParts, request: PutRequest, bytes: Uint8Array): Promise<Stored> {
  if (parts.dispatch.tierOf(bytes.length) === 'kv') {
    request.onProgress?.({ bytes: bytes.length })
    return storeInline(parts, request, Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength))
  }
  return (await putKnown(parts, request, bytes)) ?? putWhole(parts, request, bytes)
}

/** Large bytes at hand: if their entry is there already, it is protected now and nothing needs writing. */
async function putKnown(parts: PutParts, request: PutRequest, bytes: Uint8Array): Promise<Stored | undefined> {
  const hasher = parts.derivation.hasher()
  for (let offset = 0; offset < bytes.length; offset += HASH_SLICE_LENGTH) {
    if (offset > 0) await new Promise(setImmediate)
    request.signal?.throwIfAborted()
    hasher.update(bytes.subarray(offset, offset + HASH_SLICE_LENGTH))
  }
  const key = hasher.key()
  assertExpected(request.expect, key)
  const content = { key, length: bytes.length, bytes: { kind: 'none' }, pin: request.pin } as const
  const published = await parts.publisher.publish(content)
  if (published === undefined) return undefined
  try {
    request.onProgress?.({ bytes: bytes.length })
  } catch (error) {
    published.pin?.release()
    throw error
  }
  return { ...published, key, length: bytes.length }
}

async function putWhole(parts: PutParts, request: PutRequest, bytes: Uint8Array): Promise<Stored> {
  const session = new PutSession(parts, { ...request, length: bytes.length })
  try {
    for (let offset = 0; offset < bytes.length; offset += WINDOW_LENGTH) {
      request.signal?.throwIfAborted()
      await session.write(bytes.subarray(offset, offset + WINDOW_LENGTH))
    }
    return await session.commit()
  } catch (error) {
    await session.discard()
    throw error
  }
}

async function putStream(
  parts: PutParts,
  request: PutRequest,
  producer: Producer,
  closing: AbortSignal
): Promise<Stored> {
  const session = new PutSession(parts, request)
  const interrupt = new Interrupt(request.signal, closing)
  const pull = new Pull(producer)
  try {
    session.begin()
    for (;;) {
      interrupt.throwIfFired()
      const step = await interrupt.wait(pull.next())
      if (step.done === true) break
      const chunk = chunkOf(step.value)
      if (chunk.length > 0) await session.write(chunk)
    }
    interrupt.throwIfFired()
    return await session.commit()
  } catch (error) {
    await Promise.all([session.discard(), pull.cancel(error)])
    throw error
  } finally {
    interrupt.dispose()
  }
}

/** A producer being pulled: knows whether it still has to be told to stop, and whether it can answer. */
class Pull {
  readonly #producer: Producer
  #waiting = false
  #over = false

  constructor(producer: Producer) {
    this.#producer = producer
  }

  async next(): Promise<IteratorResult<unknown>> {
    this.#waiting = true
    try {
      const step = await this.#producer.next()
      this.#over = step.done === true
      return step
    } catch (error) {
      this.#over = true
      throw error
    } finally {
      this.#waiting = false
    }
  }

  /** Tells the producer once. One that hangs in its own clean-up, or in the pull it is to stop, is not waited for. */
  async cancel(reason: unknown): Promise<void> {
    if (this.#over) return
    this.#over = true
    const stopped = this.#producer.cancel(reason).catch(ownFailure)
    if (this.#waiting) return
    let timer: NodeJS.Timeout | undefined
    const late = new Promise<void>(resolve => {
      timer = setTimeout(resolve, CANCEL_GRACE_MS)
    })
    await Promise.race([stopped, late])
    clearTimeout(timer)
  }
}

/** The producer failed while cleaning up after a put that has failed already; the put's own cause is the one to report. */
function ownFailure(): void {}
