/**
 * Entries that are kept from going and nothing else: by puts and pins under way, each for a moment, or by a transaction of the
 * application's with a put in it, for as long as it lasts.
 *
 * Such a lock (FOR KEY SHARE) lets another take FOR NO KEY UPDATE, and not FOR UPDATE. Who has the first of these knows that nobody else has
 * either, so if the second is not to be had after that, somebody keeps the entry.
 */
import { type BlobKey, type Call, digestOf } from '@alkblobs/core/engine'
import type { Pool } from '../pool.js'

/** How long an entry may be kept, in milliseconds, by something that is about to be over. */
export const KEPT_MS = 500

const lock = (strength: string) => `
  SELECT key FROM $.entries WHERE key = ANY ($1::bytea[]) ORDER BY key FOR ${strength} SKIP LOCKED`
const LOCK_WEAKLY = lock('NO KEY UPDATE')
const LOCK = lock('UPDATE')

/** Whether all of these are kept. Waits for nobody. */
export function areKept(pool: Pool, keys: readonly BlobKey[], call: Call): Promise<boolean> {
  const digests = [...new Set(keys)].map(digestOf)
  return pool.write(
    call,
    () => false,
    async at => {
      const weakly = await at.rows(LOCK_WEAKLY, digests)
      return weakly.length === digests.length && (await at.rows(LOCK, digests)).length === 0
    }
  )
}
