/**
 * Where a pool is at home: the server that its record names. A record found on another server, in another database or on a later
 * timeline may be that of a copy, whose trash names bodies that the original still uses. Such a pool may be read and written, and
 * removes nothing until somebody who knows says what it is: the pool itself, moved (`acknowledge`), or a copy (`fork`).
 */
import type { CheckedCatalog } from './checked-catalog.js'
import type { PoolRecord, ServerIdentity } from './engine.js'
import { PoolRefusedError } from './errors.js'

export class Home {
  readonly #catalog: CheckedCatalog

  constructor(catalog: CheckedCatalog) {
    this.#catalog = catalog
  }

  /** For a record that is being written; nothing where the catalog is on no server. */
  async here(): Promise<Pick<PoolRecord, 'server'>> {
    return this.#catalog.hasServer ? { server: await this.#catalog.identity() } : {}
  }

  /** @throws PoolRefusedError (`moved`) if the record names another server than this one. */
  async assertAt({ server: recorded }: PoolRecord): Promise<void> {
    if (recorded === undefined || !this.#catalog.hasServer) return
    const found = await this.#catalog.identity()
    if (isSameServer(recorded, found)) return
    throw new PoolRefusedError('moved', `${differenceOf(recorded, found)}; ${ADVICE}`)
  }
}

const ADVICE =
  'until it is known which, nothing is removed: call store.acknowledgeMove() if this is the pool itself (after a failover, upgrade ' +
  'or restore), store.fork() if the original lives on elsewhere'

export function isSameServer(one: ServerIdentity | undefined, other: ServerIdentity | undefined): boolean {
  return one?.system === other?.system && one?.database === other?.database && one?.timeline === other?.timeline
}

function differenceOf(recorded: ServerIdentity, found: ServerIdentity): string {
  if (recorded.system !== found.system) return 'the pool was made on another server, and may be a copy'
  if (recorded.database !== found.database)
    return 'the pool was made in another database of this server, and may be a copy'
  return `the server was promoted or restored (timeline ${recorded.timeline}, now ${found.timeline}), and the pool may be a copy`
}
