/** Which stores may join a fleet; each rule broken is a FleetConfigError of its own (docs/spec/fleet.md). */
import type { CheckedBodies } from './checked-bodies.js'
import type { CheckedCatalog } from './checked-catalog.js'
import type { FleetConfig } from './config.js'
import { FleetConfigError } from './errors.js'

/** The lease holds one session; what the sweep under it waits for needs another. */
const SESSIONS_MIN = 2

/** @throws FleetConfigError for the first rule that the media break; what fails while it is looked at breaks it. */
export async function assertFleet(
  { sharesMedia }: FleetConfig,
  catalog: CheckedCatalog,
  bodies: CheckedBodies | undefined
): Promise<void> {
  if (!catalog.hasServer) {
    throw new FleetConfigError(
      'catalog',
      `${catalog.name} is not on a server that a fleet could share; use kv: postgres(…)`
    )
  }
  const unfit = await catalog.unfit()
  if (unfit !== undefined) throw new FleetConfigError('server', `the server cannot host a fleet: ${unfit}`)
  if (catalog.sessionsMax < SESSIONS_MIN) {
    throw new FleetConfigError(
      'sessions',
      `${catalog.name} needs at least ${SESSIONS_MIN} connections: the lease of a sweep holds one`
    )
  }
  if (bodies === undefined) return
  if (bodies.hasServer) return assertSameInstance(catalog, bodies)
  if (!sharesMedia) {
    const advice = "declare fleet: { sharedMedia: 'operator-declared' } if it is one file system on every host"
    throw new FleetConfigError('large-medium', `nobody can tell whether the hosts share the large tier; ${advice}`)
  }
}

async function assertSameInstance(catalog: CheckedCatalog, bodies: CheckedBodies): Promise<void> {
  const identities = await Promise.all([catalog.identity(), bodies.identity()]).catch(error => {
    throw new FleetConfigError('same-instance', 'the servers of the two tiers would not say who they are', error)
  })
  if (identities[0].system === identities[1].system) return
  throw new FleetConfigError('same-instance', 'the large objects are on another PostgreSQL instance than the catalog')
}
