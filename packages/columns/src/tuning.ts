/** What several columns have in common: thresholds, and what this system lets an oracle see. */
import { existsSync } from 'node:fs'
import type { Trait } from '@alkblobs/conformance'

/** Small, so that both tiers are met by short contents; not a power of two, so that no other boundary coincides with it. */
export const DUAL_TIER_THRESHOLD = 3000
/** Above every boundary of hashing and paging, below a read window; quickly materialised. */
export const KV_ONLY_THRESHOLD = 60_000

/** Open descriptors can be counted where the system lists them as files. */
export const handles: readonly Trait[] = existsSync('/proc/self/fd') ? ['handles'] : []
