/** The catalog, put together from what each file says of one thing. */
import type { Catalog } from '@alkblobs/core/engine'
import type { Sessions } from '@alkblobs/postgres-session'
import { Pool, type PoolSettings } from '../pool.js'
import { candidatesOf } from './candidates.js'
import { entriesOf } from './entries.js'
import { explainOf } from './explain.js'
import { joiningOf } from './joining.js'
import { Leases } from './lease.js'
import { Tables } from './liveness.js'
import { maintainOf } from './maintain.js'
import { metaOf } from './meta.js'
import { pinsOf } from './pins.js'
import { publishOf } from './publish.js'
import { readsOf } from './read.js'
import { removeOf } from './remove.js'
import { serverOf } from './server.js'
import { stagesOf } from './stages.js'
import { trashOf } from './trash.js'
import { windowOf } from './window.js'

export interface CatalogSettings extends PoolSettings {
  readonly inlineLengthMax: number
  /** How many sessions there are: publications take a part of them, so that reads are not starved. */
  readonly poolMax: number
}

export interface OpenCatalog {
  readonly catalog: Catalog
  /** Ends the leases taken of it; the sessions are their owner's to close. */
  endLeases(): Promise<void>
}

/** Joined publications under way at once, and joined reads: more transactions share less and no longer gain anything. */
const LANES_MAX = 3

/**
 * A catalog in a schema of its own, over sessions that stay the caller's. Looks at the schema, creates nothing.
 * @throws EngineFault `foreign` or `newer` for a schema that must be left alone.
 */
export async function openCatalog(
  sessions: Sessions,
  settings: CatalogSettings,
  call: { readonly deadlineMs: number }
): Promise<OpenCatalog> {
  const pool = new Pool(sessions, settings)
  await pool.isThere(call)
  const leases = new Leases(pool)
  const tables = new Tables(pool, leases)
  const lanes = Math.max(1, Math.min(LANES_MAX, Math.floor(settings.poolMax / 3)))
  const catalog: Catalog = {
    inlineLengthMax: settings.inlineLengthMax,
    form: 'durable',
    meta: metaOf(pool),
    ...entriesOf(pool),
    ...readsOf(pool, lanes),
    ...explainOf(pool),
    ...stagesOf(pool),
    ...publishOf(pool, lanes),
    ...pinsOf(pool),
    lease: leases.lease,
    ...candidatesOf(pool, leases, tables),
    ...windowOf(pool, leases),
    ...removeOf(pool, leases, tables),
    ...trashOf(pool),
    ...maintainOf(leases),
    sqlLiveness: tables,
    joining: joiningOf(pool),
    server: serverOf(pool, settings.poolMax)
  }
  return { catalog, endLeases: () => leases.endAll() }
}
