/** What `openStore` takes, checked and completed. */
import { optionalBoolean, optionalWholeNumber, wholeNumber } from './arguments.js'
import type { EngineDefinition } from './engine.js'
import { InvalidArgumentError } from './errors.js'
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
}

/** Longest duration accepted: what a timer of Node can count, about 24.8 days. */
const DURATION_MAX_MS = 2 ** 31 - 1
const LABEL = /^[\w.-]{1,64}$/

/** @throws InvalidArgumentError (`ERR_BLOB_INVALID_ARGUMENT`) naming the option. */
export function configOf(options: StoreOptions): StoreConfig {
  if (typeof options !== 'object' || options === null)
    throw new InvalidArgumentError('options', 'an object with a kv engine')
  const { derivation = 'blake3', instanceId = 'store' } = options
  if (!ALGORITHMS.includes(derivation)) throw new InvalidArgumentError('derivation', `one of ${ALGORITHMS.join(', ')}`)
  if (typeof instanceId !== 'string' || !LABEL.test(instanceId)) {
    throw new InvalidArgumentError('instanceId', 'at most 64 letters, digits, dots, dashes or underscores')
  }
  const duration = (name: keyof StoreOptions, fallback: number, min = 1) =>
    optionalWholeNumber(name, options[name], fallback, { min, max: DURATION_MAX_MS })
  return {
    kv: engineOf('kv', options.kv),
    large: options.large === undefined ? undefined : engineOf('large', options.large),
    threshold:
      options.threshold === undefined ? undefined : optionalWholeNumber('threshold', options.threshold, 0, { min: 0 }),
    algorithm: derivation,
    windowDelayMs: options.windowDelayMs === undefined ? undefined : windowDelayOf(options.windowDelayMs),
    trashDelayMs: duration('trashDelayMs', limits.TRASH_DELAY_MS, 0),
    pinTtlMs: duration('pinTtlMs', limits.PIN_TTL_MS),
    stageTtlMs: duration('stageTtlMs', limits.STAGE_TTL_MS),
    maxLength: optionalWholeNumber('maxLength', options.maxLength, limits.LENGTH_MAX_DEFAULT, { min: 0 }),
    putsMax: optionalWholeNumber('putsMax', options.putsMax, limits.PUTS_MAX, { min: 1 }),
    operationTimeoutMs: duration('operationTimeoutMs', limits.OPERATION_TIMEOUT_MS),
    lockTimeoutMs: duration('lockTimeoutMs', limits.LOCK_TIMEOUT_MS),
    connectTimeoutMs: duration('connectTimeoutMs', limits.CONNECT_TIMEOUT_MS),
    drainMs: duration('drainMs', 0, 0),
    verify: optionalBoolean('verify', options.verify, true),
    instanceId
  }
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
