/**
 * Every number the store promises or assumes, with its reason and its source.
 * A limit that is not here does not exist.
 */

/** Version of the protocol in `docs/spec/sweep.md`. A pool with a higher one may be read, never written or swept. */
export const PROTOCOL_VERSION = 1

/** Digest length of both derivations in bytes: BLAKE3-256 and SHA-256. */
export const DIGEST_LENGTH = 32

/** Largest inline body by default: rows beat files up to here (ADR-003, measured in `bench/`). */
export const THRESHOLD_DEFAULT = 128 * 1024

/** Window of one body read and of one body write: below it files lose throughput, above it memory is spent for nothing. */
export const WINDOW_LENGTH = 1024 * 1024

/** Time from staging to a possible removal, unless the pool says otherwise (ADR-013). */
export const WINDOW_DELAY_MS = 60 * 60 * 1000

/** Time a published body stays on its medium after it left the catalog, for readers and backups that still use it. */
export const TRASH_DELAY_MS = 5 * 60 * 1000

/** Life of a pin row between renewals. Embedded pools share a machine and its clock, so a long one costs nothing. */
export const PIN_TTL_MS = 10 * 60 * 1000

/** Life of a pin row in a fleet: how long the last puts of a host that is gone stay protected (docs/guides/fleet.md, sizing). */
export const FLEET_PIN_TTL_MS = 60_000

/** Life of a stage between renewals; a writer that is silent for longer counts as dead. */
export const STAGE_TTL_MS = 15 * 60 * 1000

/** Renewals happen this many times within a TTL, so that two of them may fail before protection ends. */
export const RENEWALS_PER_TTL = 3

/** Longest a released pin row may outlive its release while the next joined transaction is awaited. */
export const RELEASE_DELAY_MS = 50

/** Longest one engine call may take. User code (producers, consumers, liveness sources) is not bounded by it. */
export const OPERATION_TIMEOUT_MS = 30_000

/** Longest wait for a lock that another process holds. */
export const LOCK_TIMEOUT_MS = 5_000

/** Longest wait for a connection to a server. */
export const CONNECT_TIMEOUT_MS = 10_000

/** Longest a liveness source may stay silent before the sweep gives up on it. */
export const SOURCE_TIMEOUT_MS = 10 * 60 * 1000

/** Keys in one catalog call that pages through the pool: large enough to hide the call, small enough to bound memory. */
export const PAGE_SIZE = 1_000

/** Live keys that go to a catalog at once, where it judges them itself: 32 bytes each, and a round trip for all of them. */
export const LIVE_BATCH = 16 * 1024

/** Removals in one transaction: bounds how long another writer waits behind a sweep. */
export const REMOVE_BATCH = 100

/** Bodies dropped by one call: on a disk each waits for syncs of its own, and all of them have one deadline. */
export const DROP_BATCH = 100

/** Keys looked up by one catalog call. */
export const KEY_BATCH = 500

/** Keys of one `deleteMany` for which the sources are asked once: an asking may read a whole table of the application. */
export const DELETE_BATCH = 10_000

/** Puts under way at once in one store; further ones fail with a typed error instead of queueing without bound. */
export const PUTS_MAX = 1_024

/** Largest blob by default, in bytes: 1 TiB, far above any use seen, far below where lengths lose precision. */
export const LENGTH_MAX_DEFAULT = 2 ** 40

/** First and longest wait before a failed drop is tried again; it doubles in between. */
export const DROP_RETRY_MS = { first: 60_000, longest: 24 * 60 * 60 * 1000 } as const

/** How long a drop after a delete waits for the lease, each time it finds it taken: other drops hold it for a moment. */
export const LEASE_WAITS_MS = [10, 20, 40, 80] as const

/** Every n-th maintenance run looks through the body store for bodies that no row knows. */
export const SCAN_EVERY_MAINTENANCE = 16
