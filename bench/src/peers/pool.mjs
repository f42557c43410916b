/** alkblobs as a user opens it, with all defaults: a catalog that holds the small blobs, and a folder for large ones. */
import { join } from 'node:path'
import { openStore } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { sqlite } from '@alkblobs/engine-sqlite'

/** `kv` is by default a file in the folder. */
export function openPool(folder, kv = sqlite({ file: join(folder, 'kv.db') })) {
  return openStore({ kv, large: local({ root: join(folder, 'large') }) })
}

/** Puts, and lets go of the pin as a caller does that has written its reference. */
export async function putAndRelease(store, content) {
  const receipt = await store.put(content)
  await receipt.release()
  return receipt.key
}
