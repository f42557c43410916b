/** Content to put: incompressible, never the same twice, and cheap to make. */
import { randomBytes, randomFillSync } from 'node:crypto'

const NOISE = randomBytes(1024 * 1024)
const RUN = randomBytes(8)
let made = 0

/** Bytes that no other call gives. At most 1 MiB, at least 16 bytes. */
export function freshBytes(length) {
  const bytes = Buffer.from(NOISE.subarray(0, length))
  RUN.copy(bytes)
  bytes.writeDoubleLE(++made, 8)
  return bytes
}

/** So many fresh pieces of content. */
export function freshList(count, length) {
  return Array.from({ length: count }, () => freshBytes(length))
}

/** So many keys of 32 random bytes, for media that derive none. */
export function freshKeys(count) {
  return Array.from({ length: count }, () => randomFillSync(Buffer.allocUnsafeSlow(32)))
}

/** A stream that nothing has seen before, in chunks as a file is read: 64 KiB. `length` is a multiple of that. */
export async function* freshStream(length) {
  const CHUNK = 64 * 1024
  yield freshBytes(CHUNK)
  for (let at = CHUNK; at < length; at += CHUNK) {
    const from = at % NOISE.length
    yield NOISE.subarray(from, from + CHUNK)
  }
}

/** Numbers below `bound`, evenly spread, the same in every run. */
export function* spreadNumbers(count, bound) {
  let state = 1
  for (let i = 0; i < count; i++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    yield Math.floor((state / 2 ** 32) * bound)
  }
}
