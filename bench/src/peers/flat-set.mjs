/**
 * A set of raw digests by hand: one buffer, one index with open addressing, sized once. Its slots are in the order of digests, so that a
 * look in that order walks through them.
 */
import { DIGEST_LENGTH } from '../live-keys.mjs'

export function flatSet(capacity) {
  const digests = Buffer.allocUnsafeSlow(capacity * DIGEST_LENGTH)
  const slots = 2 ** Math.ceil(Math.log2(capacity * 1.5))
  const index = new Uint32Array(slots)
  const shift = Math.clz32(slots) + 1
  let size = 0
  const slotOf = (from, at) => {
    let slot = from.readUInt32BE(at) >>> shift
    for (; index[slot] !== 0; slot = (slot + 1) & (slots - 1)) {
      const start = (index[slot] - 1) * DIGEST_LENGTH
      if (digests.compare(from, at, at + DIGEST_LENGTH, start, start + DIGEST_LENGTH) === 0) break
    }
    return slot
  }
  return {
    addHex(hex) {
      const at = size * DIGEST_LENGTH
      digests.write(hex, at, DIGEST_LENGTH, 'hex')
      const slot = slotOf(digests, at)
      if (index[slot] === 0) index[slot] = ++size
    },
    hasAt: (from, at) => index[slotOf(from, at)] !== 0
  }
}
