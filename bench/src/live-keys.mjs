/** The live keys of a sweep, as an application would enumerate them: from a file of raw digests, one by one. */
import { closeSync, openSync, readSync } from 'node:fs'

export const DIGEST_LENGTH = 32
const BLOCK = 1024 * DIGEST_LENGTH

/** Every key in the file, in its written form. Holds one block of them at a time. */
export function* keysIn(file) {
  const block = Buffer.allocUnsafeSlow(BLOCK)
  const descriptor = openSync(file, 'r')
  try {
    for (;;) {
      const length = readSync(descriptor, block, 0, BLOCK)
      if (length === 0) return
      for (let at = 0; at < length; at += DIGEST_LENGTH) yield `blake3:${block.toString('hex', at, at + DIGEST_LENGTH)}`
    }
  } finally {
    closeSync(descriptor)
  }
}
