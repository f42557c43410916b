/** The columns of fleets: two instances over one pool, in each configuration that may be one. They run the rows of every durable store too. */
import { type ColumnFactory, factoryOf, type Place } from './factory.js'
import { postgresTraits } from './postgres-columns.js'
import { catalogOn, folderOf, largeObjectsIn, oneDatabase, serverMedia } from './postgres-media.js'
import { DUAL_TIER_THRESHOLD, KV_ONLY_THRESHOLD } from './tuning.js'

/** kv = postgres, large = local, on a file system that is declared as shared, as between two processes of one machine it is. */
export function fleetPostgresLocal(place?: Place): ColumnFactory {
  return factoryOf(
    {
      name: 'fleet(postgres + local)',
      traits: ['dual-tier', 'foreign', 'corrupt', 'root', 'fleet', ...postgresTraits],
      threshold: DUAL_TIER_THRESHOLD,
      needsServer: true,
      fleet: { sharedMedia: 'operator-declared' },
      media: async (site, largeSite = site) => serverMedia(await catalogOn(site), folderOf(largeSite))
    },
    place
  )
}

/** kv = postgres with a threshold. */
export function fleetKvOnlyPostgres(place?: Place): ColumnFactory {
  return factoryOf(
    {
      name: 'fleet(kv-only postgres)',
      traits: ['kv-only', 'fleet', ...postgresTraits],
      threshold: KV_ONLY_THRESHOLD,
      needsServer: true,
      fleet: {},
      media: async site => serverMedia(await catalogOn(site))
    },
    place
  )
}

/** kv = postgres, large = pglo, on one server: everything in one place. */
export function fleetPostgresPglo(place?: Place): ColumnFactory {
  return factoryOf(
    {
      name: 'fleet(postgres + pglo)',
      traits: [
        'dual-tier',
        'foreign',
        'corrupt',
        'large-objects',
        'dormant',
        'copy',
        'fleet',
        'two-servers',
        ...postgresTraits
      ],
      threshold: DUAL_TIER_THRESHOLD,
      needsServer: true,
      fleet: {},
      media: oneDatabase,
      apart: async site => serverMedia(await catalogOn(site), largeObjectsIn(await site.elsewhere()))
    },
    place
  )
}
