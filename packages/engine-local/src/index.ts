/**
 * Large blobs as files in a folder: a body store of alkblobs.
 *
 * Start at `layout.ts` (the names), `durable.ts` (what survives a power loss) and `medium.ts` (when absence is believed); the
 * contract's methods are in `bodies/`.
 */
import type { EngineDefinition } from '@alkblobs/core/engine'
import { checkConfig, type LocalConfig } from './config.js'
import { nodeFiles } from './files.js'
import { openFolder } from './open.js'

export type { LocalConfig } from './config.js'

/**
 * An engine that keeps bodies as files below `root`, durably. Nothing is made before the first write.
 * @throws InvalidArgumentError for an option that is of the wrong type or out of bounds.
 */
export function local(config: LocalConfig): EngineDefinition {
  const checked = checkConfig(config)
  return { name: 'local', open: context => openFolder(checked, nodeFiles, context) }
}
