/** Dispatch: which tier keeps a blob is a pure function of its length (ADR-003). */
import type { StoreConfig, StoreMode } from './config.js'
import type { Engine } from './engine.js'
import { BlobTooLargeError, InvalidArgumentError } from './errors.js'
import { THRESHOLD_DEFAULT } from './limits.js'

export class Dispatch {
  readonly mode: StoreMode
  /** Longest length that goes to the kv tier, in bytes, inclusive. */
  readonly threshold: number

  constructor(mode: StoreMode, threshold: number) {
    this.mode = mode
    this.threshold = threshold
  }

  /** @throws BlobTooLargeError where there is no tier for that length. */
  tierOf(length: number): 'kv' | 'large' {
    if (length <= this.threshold) return 'kv'
    if (this.mode === 'dual-tier') return 'large'
    throw new BlobTooLargeError(
      this.threshold,
      'this store has no large tier; open it with one, or with a higher threshold'
    )
  }
}

/** @throws InvalidArgumentError for a threshold that the kv engine cannot hold. */
export function dispatchOf(config: StoreConfig, kv: Engine): Dispatch {
  const inlineLengthMax = kv.catalog?.inlineLengthMax ?? 0
  if (config.threshold !== undefined && config.threshold > inlineLengthMax) {
    throw new InvalidArgumentError(
      'threshold',
      `at most ${inlineLengthMax} bytes, the most ${kv.name} keeps in one row`
    )
  }
  if (config.large !== undefined)
    return new Dispatch('dual-tier', config.threshold ?? Math.min(THRESHOLD_DEFAULT, inlineLengthMax))
  const memOnly = kv.durability === 'process' && config.threshold === undefined
  if (memOnly) return new Dispatch('mem-only', inlineLengthMax)
  return new Dispatch('kv-only', config.threshold ?? Math.min(THRESHOLD_DEFAULT, inlineLengthMax))
}
