/**
 * A pool in one SQLite file: the catalog, with small bodies inline.
 *
 * To find the way: `medium.ts` says when the file is a pool and makes one, `schema.ts` what lies in it, `group-commit.ts` how
 * concurrent writes share a commit, `catalog/` holds one file for each thing a catalog does.
 */
import { createRequire } from 'node:module'
import { type Engine, type EngineDefinition, EngineFault, type OpenContext } from '@alkblobs/core/engine'
import { catalogOf } from './catalog/index.js'
import { classify } from './classify.js'
import { type CheckedConfig, checkConfig, type SqliteConfig } from './config.js'
import { Medium } from './medium.js'
import { Pool } from './pool.js'
import { untilFree } from './waiting.js'

export type { SqliteConfig } from './config.js'

// The manifest lies one folder above this file, in the sources as in the package.
const { version } = createRequire(import.meta.url)('../package.json') as { version: string }

/**
 * An engine that keeps a pool in one SQLite file. The file, `-wal` and `-shm` beside it are made by the first write and are
 * for the owner alone; a sweep makes a `-lease`. Several processes of one machine may use the file at once.
 * What resolved is on disk, unless `durability` is `'os'`.
 * @throws InvalidArgumentError (`ERR_BLOB_INVALID_ARGUMENT`) for a config that names no file or an unknown durability.
 */
export function sqlite(config: SqliteConfig): EngineDefinition {
  const checked = checkConfig(config)
  return { name: 'sqlite', open: context => open(checked, context) }
}

async function open(config: CheckedConfig, context: OpenContext): Promise<Engine> {
  const medium = new Medium(config)
  // A file that is no pool of ours is refused now rather than at the first call.
  await untilFree(() => medium.attach(), { deadlineMs: Infinity }, context.lockTimeoutMs).catch(fault)
  const { catalog, endLeases } = catalogOf(new Pool(medium, context))
  return {
    name: 'sqlite',
    version,
    durability: config.durability,
    catalog,
    classify,
    async close() {
      await endLeases()
      medium.close()
    }
  }
}

/** Before there is an engine nobody can ask its `classify` (ENG-OPEN-3). */
function fault(error: unknown): never {
  throw error instanceof EngineFault
    ? error
    : new EngineFault(classify(error), 'the file cannot be opened as a pool', error)
}
