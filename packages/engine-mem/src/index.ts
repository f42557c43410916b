/**
 * Blobs in the memory of one process: the engine contract in its smallest form.
 *
 * To learn how an engine is written, read `medium.ts` (what is kept), then `catalog/` (one file for each thing a catalog
 * does). Every clause of the contract is named where it is kept.
 */
import { createRequire } from 'node:module'
import { type EngineDefinition, EngineFault } from '@alkblobs/core/engine'
import { catalogOf } from './catalog/index.js'
import { classify } from './classify.js'
import { checkConfig, type MemConfig } from './config.js'
import { Medium, type MemMedium } from './medium.js'
import { Session } from './session.js'

export type { MemConfig } from './config.js'
export type { MemMedium } from './medium.js'

// The manifest lies one folder above this file, in the sources as in the package.
const { version } = createRequire(import.meta.url)('../package.json') as { version: string }

/** Memory for one pool, to be shared by several stores of this process: `mem({ medium })`. It is freed when nobody holds it. */
export function createMedium(): MemMedium {
  return new Medium()
}

/**
 * An engine that keeps a pool in the memory of this process; it ends with the process, or with the last who holds its medium.
 * Without `medium` every opening starts with an empty pool of its own.
 * @throws InvalidArgumentError for a medium that `createMedium()` did not make.
 */
export function mem(config: MemConfig = {}): EngineDefinition {
  const { medium: shared } = checkConfig(config)
  return {
    name: 'mem',
    async open(context) {
      const form = context.form ?? 'inline'
      const medium = shared ?? new Medium()
      medium.form ??= form
      if (medium.form !== form) {
        throw new EngineFault('foreign', 'this memory is a pool of its own, or one beside a durable catalog; not both')
      }
      const session = new Session(medium)
      return {
        name: 'mem',
        version,
        durability: 'process',
        catalog: catalogOf(medium, session, form),
        classify,
        async close() {
          session.end()
        }
      }
    }
  }
}
