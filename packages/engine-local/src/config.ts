/** What a user says about a folder of bodies, and its check. */
import { resolve } from 'node:path'
import { InvalidArgumentError } from '@alkblobs/core/engine'

export interface LocalConfig {
  /** The folder that holds the bodies. It and its parents are made (mode 0700) when the pool is first written, never by reading. */
  readonly root: string
  /** Most descriptors that bodies hold open at once; 4 to 65,536, by default 128. A quarter is kept for readers. */
  readonly openMax?: number
}

export interface CheckedConfig {
  /** Absolute, so that a later change of the working directory does not move the pool. */
  readonly root: string
  readonly openMax: number
}

/** Far below the usual 1,024 descriptors of a process, far above what a disk serves at once. */
const OPEN_MAX_DEFAULT = 128

/** @throws InvalidArgumentError that names the option. */
export function checkConfig(config: LocalConfig): CheckedConfig {
  if (typeof config !== 'object' || config === null) throw new InvalidArgumentError('config', 'an object with a root')
  const { root, openMax = OPEN_MAX_DEFAULT } = config
  if (typeof root !== 'string' || root === '' || root.includes('\0')) {
    throw new InvalidArgumentError('root', 'the path of a folder')
  }
  if (!Number.isInteger(openMax) || openMax < 4 || openMax > 65_536) {
    throw new InvalidArgumentError('openMax', 'a whole number from 4 to 65536')
  }
  return { root: resolve(root), openMax }
}
