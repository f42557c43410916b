/** What damage does to bytes that can be rewritten in place. */
import type { Damage } from '@alkblobs/conformance'

/** The bytes after the damage; only for damages that leave bytes. */
export function damagedBytes(bytes: Uint8Array, how: Damage): Uint8Array {
  if (how === 'empty') return new Uint8Array(0)
  if (how === 'truncate') return bytes.slice(0, -1)
  if (how !== 'flip') throw new TypeError(`"${how}" leaves no bytes`)
  const damaged = bytes.slice()
  const at = damaged.length >> 1
  damaged[at] = (damaged[at] ?? 0) ^ 0x01
  return damaged
}
