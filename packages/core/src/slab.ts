/**
 * Copies of small bodies. Each is cut from a slab that many of them share: a buffer of its own for each would cost an allocation
 * outside the heap, and such allocations are most of what the garbage collector does during small puts.
 */
const SLAB_LENGTH = 512 * 1024
/** Longer bodies waste too much of a slab's end, and are copied at the speed of memory anyway. */
const COPY_LENGTH_MAX = SLAB_LENGTH / 8

let slab = Buffer.alloc(0)
let used = 0

/** The bytes as they are now, in memory that nobody else writes to. */
export function copyOf(bytes: Uint8Array): Buffer {
  const { length } = bytes
  if (length > COPY_LENGTH_MAX) return Buffer.from(bytes)
  if (used + length > slab.length) {
    slab = Buffer.allocUnsafeSlow(SLAB_LENGTH)
    used = 0
  }
  const copy = slab.subarray(used, used + length)
  copy.set(bytes)
  used += length
  return copy
}
