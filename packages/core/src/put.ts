/** Content in each of its forms, to its entry. The pool exists already. */
import { type Content, chunkOf, partOf } from './content.js'
import { LengthMismatchError } from './errors.js'
import { Interrupt } from './interrupt.js'
import { WINDOW_LENGTH } from './limits.js'
import type { Published } from './publish.js'
import type { Pull } from './pull.js'
import type { PutRequest } from './put-options.js'
import { assertExpected, type PutParts, PutSession, storeInline, tooLarge } from './put-session.js'

type Bytes = Extract<Content, { kind: 'bytes' }>

/** How many bytes are hashed between two turns of the event loop. */
const HASH_SLICE_LENGTH = 8 * WINDOW_LENGTH

/** Refuses, before anything is read, bytes that contradict their options or have no tier. */
export function assertAcceptable({ dispatch }: PutParts, request: PutRequest, length: number): void {
  if (request.length !== undefined && request.length !== length) throw new LengthMismatchError(request.length, length)
  if (length > request.maxLength) throw tooLarge(request.maxLength)
  dispatch.tierOf(length)
}

/** Puts bytes that go inline. `body` must be nobody else's until this settles. @throws like `storeInline`, at once. */
export function putSmall(parts: PutParts, request: PutRequest, body: Buffer): Promise<Published> {
  request.onProgress?.({ bytes: body.length })
  return storeInline(parts, request, body)
}

/** Puts longer bytes, which may be the caller's. */
export async function putLarge(parts: PutParts, request: PutRequest, content: Bytes): Promise<Published> {
  return (await putKnown(parts, request, content)) ?? putWhole(parts, request, content)
}

/** Large bytes at hand: if their entry is there already, it is protected now and nothing needs writing. */
async function putKnown(
  parts: PutParts,
  request: PutRequest,
  { bytes, length }: Bytes
): Promise<Published | undefined> {
  const hasher = parts.derivation.hasher()
  for (let offset = 0; offset < length; offset += HASH_SLICE_LENGTH) {
    if (offset > 0) await new Promise(setImmediate)
    request.signal?.throwIfAborted()
    hasher.update(partOf(bytes, offset, Math.min(offset + HASH_SLICE_LENGTH, length)))
  }
  const key = hasher.key()
  assertExpected(request.expect, key)
  const published = await parts.publisher.publish({
    key,
    length,
    bytes: { kind: 'none' },
    pin: request.pin,
    verify: request.verify
  })
  if (published === undefined) return undefined
  try {
    request.onProgress?.({ bytes: length })
  } catch (error) {
    published.pin?.release()
    throw error
  }
  return published
}

async function putWhole(parts: PutParts, request: PutRequest, { bytes, length }: Bytes): Promise<Published> {
  const session = new PutSession(parts, request)
  try {
    for (let offset = 0; offset < length; offset += WINDOW_LENGTH) {
      request.signal?.throwIfAborted()
      await session.write(partOf(bytes, offset, Math.min(offset + WINDOW_LENGTH, length)))
    }
    return await session.commit()
  } catch (error) {
    await session.discard()
    throw error
  }
}

/** Puts what a producer gives; `closing` interrupts the wait for it. */
export async function putStream(
  parts: PutParts,
  request: PutRequest,
  pull: Pull,
  closing: AbortSignal
): Promise<Published> {
  const session = new PutSession(parts, request)
  const interrupt = new Interrupt(request.signal, closing)
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
    await session.discard()
    throw error
  } finally {
    interrupt.dispose()
  }
}
