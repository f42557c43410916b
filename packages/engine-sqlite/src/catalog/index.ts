/** The catalog, put together from what each file says of one thing. */
import type { Catalog } from '@alkblobs/core/engine'
import type { Pool } from '../pool.js'
import { entriesOf } from './entries.js'
import { explainOf } from './explain.js'
import { Leases } from './lease.js'
import { maintainOf } from './maintain.js'
import { metaOf } from './meta.js'
import { pinsOf } from './pins.js'
import { publishOf } from './publish.js'
import { removeOf } from './remove.js'
import { stagesOf } from './stages.js'
import { trashOf } from './trash.js'
import { windowOf } from './window.js'

/** A body passes through memory and the event loop whole, so larger ones belong to a body store. */
const INLINE_LENGTH_MAX = 16 * 1024 * 1024

/** The catalog, and what ends the leases taken of it. */
export function catalogOf(pool: Pool): { readonly catalog: Catalog; readonly endLeases: () => Promise<void> } {
  const leases = new Leases(pool)
  const catalog: Catalog = {
    inlineLengthMax: INLINE_LENGTH_MAX,
    form: 'durable',
    meta: metaOf(pool),
    ...entriesOf(pool),
    ...explainOf(pool),
    ...stagesOf(pool),
    ...publishOf(pool),
    ...pinsOf(pool),
    lease: leases.lease,
    ...windowOf(pool, leases),
    ...removeOf(pool, leases),
    ...trashOf(pool),
    ...maintainOf(pool, leases)
  }
  return { catalog, endLeases: () => leases.endAll() }
}
