/** What rows about fleets share: two instances over one pool, and the pin rows of each. */
import type { BlobKey, Store } from '@alkblobs/core'
import { present } from './expect.js'
import { type MediumOracle, oracleOf, type StoredPin, type StoreFactory } from './factory.js'

/** Two instances of one fleet, and a look at what they share. */
export async function pair(factory: StoreFactory, tuning: Parameters<StoreFactory['open']>[0] = {}) {
  const one = await factory.open(tuning)
  const other = present(await factory.second?.(one, {}), 'a second instance')
  return { one, other, oracle: oracleOf(factory, one) }
}

/** Closes the stores and tears down. */
export async function end(factory: StoreFactory, ...stores: readonly Store[]): Promise<void> {
  for (const store of stores) await store.close()
  await factory.teardown()
}

/** The pin rows of a key, whoever owns them. */
export const rowsOf = async (oracle: MediumOracle, key: BlobKey): Promise<readonly StoredPin[]> =>
  present(await oracle.pinRows?.(key), 'the pin rows')

/** The rows of an instance are those that its own explanation calls its own. */
export async function ownRow(oracle: MediumOracle, store: Store, key: BlobKey): Promise<StoredPin> {
  const own = present(
    (await store.why(key)).pins.find(pin => pin.own),
    'a pin of its own'
  )
  return present(
    (await rowsOf(oracle, key)).find(({ owner }) => owner === own.owner),
    'its row'
  )
}
