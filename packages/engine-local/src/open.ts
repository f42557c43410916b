/** Opens a folder: looks at it, makes nothing. */
import { createRequire } from 'node:module'
import { type Engine, EngineFault, type OpenContext } from '@alkblobs/core/engine'
import { claimed } from './bodies/claim.js'
import { openBodies } from './bodies/index.js'
import { KeptFiles } from './bodies/kept.js'
import { classify } from './classify.js'
import type { CheckedConfig } from './config.js'
import { Descriptors } from './descriptors.js'
import type { Files } from './files.js'
import type { Medium } from './medium.js'

// The manifest lies one folder above this file, in the sources as in the package.
const { version } = createRequire(import.meta.url)('../package.json') as { version: string }

/** `files` is the file system to use: the real one, or what a test puts around it. */
export async function openFolder(config: CheckedConfig, files: Files, context: OpenContext): Promise<Engine> {
  const descriptors = new Descriptors(config.openMax)
  const medium: Medium = {
    root: config.root,
    algorithm: context.algorithm,
    files,
    descriptors,
    kept: new KeptFiles(files, descriptors),
    settled: new Set(),
    poolId: undefined,
    claim: undefined
  }
  // ENG-OPEN-2: a folder that is no pool is refused here, with a reason, not at the first put.
  await claimed(medium).catch(fault)
  const { bodies, close } = openBodies(medium)
  return { name: 'local', version, durability: 'disk', bodies, classify, close }
}

/** Before there is an engine nobody can ask its `classify` (ENG-OPEN-3). */
function fault(error: unknown): never {
  throw error instanceof EngineFault ? error : new EngineFault(classify(error), 'the folder cannot be read', error)
}
