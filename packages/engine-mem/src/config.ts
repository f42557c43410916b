/** What a user may say about a pool in memory. */
import { InvalidArgumentError } from '@alkblobs/core/engine'
import { Medium, type MemMedium } from './medium.js'

export interface MemConfig {
  /** The memory to use, from `createMedium()`. Without it every opening starts with an empty pool of its own. */
  readonly medium?: MemMedium
}

/** Checks what was given. @throws InvalidArgumentError for a medium that `createMedium()` did not make. */
export function checkConfig(config: MemConfig): { readonly medium: Medium | undefined } {
  if (typeof config !== 'object' || config === null || Array.isArray(config))
    throw new InvalidArgumentError('config', 'an object')
  const { medium } = config
  if (medium !== undefined && !(medium instanceof Medium))
    throw new InvalidArgumentError('medium', 'made by createMedium()')
  return { medium }
}
