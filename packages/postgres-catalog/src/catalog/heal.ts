/** Points an entry whose bytes were found broken at new ones. */
import { digestOf, type Entry, type Publication } from '@alkblobs/core/engine'
import type { Connection } from '../connection.js'
import { trashLocator } from './trash.js'

/** Compared once more in the statement that writes: another one may have healed it since it was looked at. */
const POINT = `
  UPDATE $.entries SET length = $2::bigint, body = $3::bytea, locator = $4::text
  WHERE key = $1::bytea AND locator IS NOT DISTINCT FROM $5::text
    AND coalesce(octet_length(body), -1) = $6::bigint`

/** Says whether the entry still lay where it was found. Its old locator goes to trash; an old inline body is gone. */
export async function heal(
  at: Connection,
  { place, length }: Entry,
  { key, length: newLength, bytes, trashDelayMs }: Publication
): Promise<boolean> {
  const digest = digestOf(key)
  const body = bytes.kind === 'inline' ? Buffer.from(bytes.body) : null
  const locator = bytes.kind === 'staged' ? bytes.locator : null
  const old = place.tier === 'large' ? place.locator : null
  const oldHeld = place.tier === 'kv' ? place.length : -1
  if ((await at.run(POINT, digest, newLength, body, locator, old, oldHeld)) === 0) return false
  if (old !== null) await trashLocator(at, { locator: old, digest, length, delayMs: trashDelayMs })
  return true
}
