/** What a store does over a record or a claim that somebody has changed: a value or a typed error, and nothing live is lost. */
import { BlobError, openStore, type Store, type StoreOptions } from '@alkblobs/core'
import { expect } from 'vitest'

const SMALL = 'kept in the catalog'
const LARGE = 'kept in the large tier, which is longer'
const THRESHOLD = SMALL.length

/** Two entries that a source references, and one that nobody does, staged and waiting out an hour. */
export interface Pool {
  readonly live: readonly string[]
  readonly waiting: string
}

const HOUR_MS = 3_600_000
const tuned = { threshold: THRESHOLD, trashDelayMs: 0 }

function protect(store: Store, { live }: Pick<Pool, 'live'>): void {
  store.protect({ name: 'references', live: () => live })
}

export async function makePool(media: Pick<StoreOptions, 'kv' | 'large'>): Promise<Pool> {
  const store = await openStore({ ...media, ...tuned, windowDelayMs: HOUR_MS })
  const keys: string[] = []
  for (const content of [SMALL, LARGE, 'waiting']) {
    const receipt = await store.put(content)
    await receipt.release()
    keys.push(receipt.key)
  }
  const [small, large, waiting] = keys as [string, string, string]
  const pool = { live: [small, large], waiting }
  protect(store, pool)
  expect(await store.sweep()).toMatchObject({ candidatesStaged: 1, live: 2 })
  await store.close()
  return pool
}

/** The answer, or `undefined` for a failure that has a name; anything else is thrown on, and fails the property. */
async function named<T>(attempt: () => Promise<T>): Promise<T | undefined> {
  try {
    return await attempt()
  } catch (error) {
    if (error instanceof BlobError && error.message !== '') return undefined
    throw error
  }
}

/** Does everything a store can over the changed pool; answers whether it could be opened. */
export async function useAll(media: Pick<StoreOptions, 'kv' | 'large'>, pool: Pool): Promise<boolean> {
  const store = await named(() => openStore({ ...media, ...tuned }))
  if (store === undefined) return false
  try {
    protect(store, pool)
    for (const key of [...pool.live, pool.waiting]) {
      await named(() => store.stat(key))
      await named(async () => (await store.get(key))?.bytes())
      await named(() => store.why(key))
    }
    const receipt = await named(() => store.put('another one'))
    await receipt?.release()
    for (let times = 0; times < 2; times++) await named(() => store.sweep())
    for (const key of pool.live) expect(await named(() => store.delete(key))).not.toBe(true)
    await named(() => store.maintain({ scan: true }))
    await named(() => store.verify({ repair: true }))
    await named(() => store.usage())
    const settings = await named(() => store.settings())
    if (settings !== undefined)
      expect(Number.isSafeInteger(settings.windowDelayMs) && settings.windowDelayMs >= 0).toBe(true)
  } finally {
    await named(() => store.close())
  }
  return true
}

/** With the record as it was, everything is there: what is live, and what had an hour to wait. */
export async function expectWhole(media: Pick<StoreOptions, 'kv' | 'large'>, pool: Pool): Promise<void> {
  const store = await openStore({ ...media, ...tuned })
  const found = await Promise.all([...pool.live, pool.waiting].map(async key => (await store.get(key))?.text()))
  await store.close()
  expect(found).toEqual([SMALL, LARGE, 'waiting'])
}
