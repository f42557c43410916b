/** alkblobs as a user opens it, with all defaults: a catalog that holds the small blobs, and a folder for large ones. */
import { join } from 'node:path'
import { openStore } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { sqlite } from '@alkblobs/engine-sqlite'
import { freshBytes } from '../content.mjs'
import { perSecond } from '../rounds.mjs'

const fileIn = folder => join(folder, 'kv.db')

/** `kv` is by default a file in the folder. */
export function openPool(folder, kv = sqlite({ file: fileIn(folder) })) {
  return openStore({ kv, large: local({ root: join(folder, 'large') }) })
}

/** Makes a pool of so many tiny blobs, each put as a user would, but not synced: it is there to be looked at. Tells the digest of each. */
export async function fillPool(folder, { entries, length, onDigest }) {
  const store = await openPool(folder, sqlite({ file: fileIn(folder), durability: 'os' }))
  const put = async () => {
    const { key } = await store.put(freshBytes(length), { pin: false })
    onDigest(Buffer.from(key.slice(7), 'hex'))
  }
  await perSecond({ count: entries, width: 512 }, put)
  await store.close()
}

/** Puts, and lets go of the pin as a caller does that has written its reference. */
export async function putAndRelease(store, content) {
  const receipt = await store.put(content)
  await receipt.release()
  return receipt.key
}
