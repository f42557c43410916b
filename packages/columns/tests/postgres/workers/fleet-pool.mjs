// A fleet's pool as a worker opens it: from a place that the test made, with the built packages, as a user's program does.
import { openStore } from '@alkblobs/core'
import { local } from '@alkblobs/engine-local'
import { pglo } from '@alkblobs/engine-pglo'
import { postgres } from '@alkblobs/engine-postgres'

export { contentOf, given, heard, randomFrom, say, toldOnce } from '../../processes/workers/pool.mjs'

export const THRESHOLD = 4_096

/** `name` is what the server shows beside the sessions of this store. */
export function openPool({ kind, url, schema, root }, { name, wrap = definition => definition, fleet, ...options }) {
  const kv = postgres({ url, schema, applicationName: name, poolMax: 6 })
  const large = { files: () => local({ root }), objects: () => pglo({ url, applicationName: name, poolMax: 6 }) }[
    kind
  ]?.()
  return openStore({
    kv: wrap(kv),
    ...(large && { large: wrap(large) }),
    threshold: THRESHOLD,
    windowDelayMs: 0,
    trashDelayMs: 0,
    fleet: { sharedMedia: 'operator-declared', ...fleet },
    ...options
  })
}
