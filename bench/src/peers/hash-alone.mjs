/** The hash and nothing else: what no content-addressed store can be faster than. */
import { Blake3Hasher, blake3 } from '@napi-rs/blake-hash'

const WINDOW = 1024 * 1024

export function hashBytes(bytes) {
  if (bytes.length <= WINDOW) return blake3(bytes)
  const hasher = new Blake3Hasher()
  for (let at = 0; at < bytes.length; at += WINDOW) hasher.update(bytes.subarray(at, at + WINDOW))
  return hasher.digestBuffer()
}
