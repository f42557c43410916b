/** What `openStore` takes, checked and completed. */
import { optionalBoolean, optionalWholeNumber, optionsObject, wholeNumber } from './arguments.js'
import type { EngineDefinition } from './engine.js'
import { FleetConfigError, InvalidArgumentError } from './errors.js'
import { ALGORITHMS, type Algorithm } from './key.js'
import * as limits from './limits.js'

export interface StoreOptions {
  /** The engine that keeps the catalog and small bodies. */
  readonly kv: EngineDefinition
  /** The engine that keeps bodies longer than the threshold; without one, longer content is refused. */
  readonly large?: EngineDefinition
  /** Lengths up to and including this many bytes go to the kv tier. Default 131072; without limit for `{ kv: mem() }` alone. */
  readonly threshold?: number
  /** How keys are derived; fixed when the pool is made. Default `blake3`. */
  readonly derivation?: Algorithm
  /** Shortest time from staging to removal in milliseconds; a setting of the pool, recorded when it is made. Default 1 hour. */
  readonly windowDelayMs?: number
  /** Time a removed large body stays on its medium for readers and backups, in milliseconds. Default 5 minutes. */
  readonly trashDelayMs?: number
  /** Life of a pin between renewals, in milliseconds. Default 10 minutes. */
  readonly pinTtlMs?: number
  /** Life of an unfinished write between renewals, in milliseconds. Default 15 minutes. */
  readonly stageTtlMs?: number
  /** Longest blob accepted, in bytes. Default 1 TiB. */
  readonly maxLength?: number
  /** Streams and writers open at once; further ones fail with `ERR_BLOB_TOO_MANY_PUTS`. Default 1024. */
  readonly putsMax?: number
  /** Bound of each engine call in milliseconds; your producers and consumers are not bounded by it. Default 30 s. */
  readonly operationTimeoutMs?: number
  readonly lockTimeoutMs?: number
  readonly connectTimeoutMs?: number
  /** How long `close` lets operations under way go on, in milliseconds. Default 0. */
  readonly drainMs?: number
  /** Whether whole reads are verified against their key. Default true. */
  readonly verify?: boolean
  /** A label for this instance, shown beside its pins. At most 64 letters, digits, `.`, `_` or `-`. */
  readonly instanceId?: string
  /** Joins the fleet of processes and hosts that share this pool; what it may be opened with is checked. */
  readonly fleet?: FleetOptions
}

/** How a store takes part in a fleet (docs/spec/fleet.md). */
export interface FleetOptions {
  /**
   * Life of a pin between renewals, in milliseconds; renewed three times in it. A process that is gone, paused or cut off for longer
   * loses its protection. Default 1 minute; at least 3.
   */
  readonly pinTtlMs?: number
  /** A label for this instance, as in the options of the store. */
  readonly instanceId?: string
  /** Declares that the folder of the large tier is one file system for every host. Nobody can check that but you. */
  readonly sharedMedia?: 'operator-declared'
}

export type StoreMode = 'mem-only' | 'kv-only' | 'dual-tier'

export interface StoreConfig {
  readonly kv: EngineDefinition
  readonly large: EngineDefinition | undefined
  readonly threshold: number | undefined
  readonly algorithm: Algorithm
  readonly windowDelayMs: number | undefined
  readonly trashDelayMs: number
  readonly pinTtlMs: number
  readonly stageTtlMs: number
  readonly maxLength: number
  readonly putsMax: number
  readonly operationTimeoutMs: number
  readonly lockTimeoutMs: number
  readonly connectTimeoutMs: number
  readonly drainMs: number
  readonly verify: boolean
  readonly instanceId: string
  readonly fleet: FleetConfig | undefined
}

export interface FleetConfig {
  readonly sharesMedia: boolean
}

/** Longest duration accepted: what a timer of Node can count, about 24.8 days. */
const DURATION_MAX_MS = 2 ** 31 - 1
const LABEL = /^[\w.-]{1,64}$/

/** @throws InvalidArgumentError (`ERR_BLOB_INVALID_ARGUMENT`) naming the option. */
export function configOf(options: StoreOptions): StoreConfig {
  if (typeof options !== 'object' || options === null)
    throw new InvalidArgumentError('options', 'an object with a kv engine')
  const fleet = fleetOf(options)
  const { derivation = 'blake3', instanceId = options.fleet?.instanceId ?? 'store' } = options
  if (!ALGORITHMS.includes(derivation)) throw new InvalidArgumentError('derivation', `one of ${ALGORITHMS.join(', ')}`)
  for (const label of [instanceId, options.fleet?.instanceId]) {
    if (label === undefined || (typeof label === 'string' && LABEL.test(label))) continue
    throw new InvalidArgumentError('instanceId', 'at most 64 letters, digits, dots, dashes or underscores')
  }
  const duration = (name: keyof StoreOptions, fallback: number, min = 1) =>
    optionalWholeNumber(name, options[name], fallback, { min, max: DURATION_MAX_MS })
  // Looked at where that of the fleet comes before it, too: an option that makes no sense is never passed over.
  const pinTtlMs = duration('pinTtlMs', fleet ? limits.FLEET_PIN_TTL_MS : limits.PIN_TTL_MS)
  return {
    kv: engineOf('kv', options.kv),
    large: options.large === undefined ? undefined : engineOf('large', options.large),
    threshold:
      options.threshold === undefined ? undefined : optionalWholeNumber('threshold', options.threshold, 0, { min: 0 }),
    algorithm: derivation,
    windowDelayMs: options.windowDelayMs === undefined ? undefined : windowDelayOf(options.windowDelayMs),
    trashDelayMs: duration('trashDelayMs', limits.TRASH_DELAY_MS, 0),
    pinTtlMs: fleet?.pinTtlMs ?? pinTtlMs,
    stageTtlMs: duration('stageTtlMs', limits.STAGE_TTL_MS),
    maxLength: optionalWholeNumber('maxLength', options.maxLength, limits.LENGTH_MAX_DEFAULT, { min: 0 }),
    putsMax: optionalWholeNumber('putsMax', options.putsMax, limits.PUTS_MAX, { min: 1 }),
    operationTimeoutMs: duration('operationTimeoutMs', limits.OPERATION_TIMEOUT_MS),
    lockTimeoutMs: duration('lockTimeoutMs', limits.LOCK_TIMEOUT_MS),
    connectTimeoutMs: duration('connectTimeoutMs', limits.CONNECT_TIMEOUT_MS),
    drainMs: duration('drainMs', 0, 0),
    verify: optionalBoolean('verify', options.verify, true),
    instanceId,
    fleet: fleet && { sharesMedia: fleet.sharesMedia }
  }
}

/** @throws FleetConfigError (`ERR_BLOB_FLEET`) for a TTL that gives renewals no room, InvalidArgumentError for what is no option. */
function fleetOf(options: StoreOptions): (FleetConfig & { readonly pinTtlMs?: number }) | undefined {
  if (options.fleet === undefined) return undefined
  const { pinTtlMs = options.pinTtlMs, sharedMedia } = optionsObject('fleet', options.fleet)
  if (sharedMedia !== undefined && sharedMedia !== 'operator-declared') {
    throw new InvalidArgumentError('fleet.sharedMedia', "'operator-declared', or left out")
  }
  const sharesMedia = sharedMedia === 'operator-declared'
  if (pinTtlMs === undefined) return { sharesMedia }
  if (!Number.isSafeInteger(pinTtlMs) || pinTtlMs < limits.RENEWALS_PER_TTL || pinTtlMs > DURATION_MAX_MS) {
    const bounds = `a whole number of milliseconds from ${limits.RENEWALS_PER_TTL} to ${DURATION_MAX_MS}`
    throw new FleetConfigError(
      'pin-ttl',
      `the pin TTL of a fleet must be ${bounds}: pins are renewed every third of it`
    )
  }
  return { sharesMedia, pinTtlMs }
}

/** A window delay: durable, never a timer, so it may be longer than other durations (up to ten years). */
export function windowDelayOf(value: unknown): number {
  return wholeNumber('windowDelayMs', value, { min: 0, max: 10 * 365 * 24 * 3_600_000 })
}

function engineOf(tier: string, engine: EngineDefinition): EngineDefinition {
  if (typeof engine !== 'object' || engine === null || typeof engine.open !== 'function') {
    throw new InvalidArgumentError(tier, 'an engine, such as sqlite({ file }) or local({ root })')
  }
  return engine
}
