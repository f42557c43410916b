/** Copies of a pool: holding still while one is made, and making one a pool of its own. */
import type { PoolId } from './engine.js'
import { EngineError, PoolRefusedError } from './errors.js'
import type { Pool } from './pool.js'

/** What the caller of `fork` knows and nobody can check. */
export interface ForkOptions {
  /** Says that the large tier which this store was opened with is a copy too, and not the one that the original still uses. */
  readonly bodies?: 'copied'
}

/**
 * Makes a copied pool one of its own.
 * @throws PoolRefusedError if there is no pool, or large bodies of which nobody said that they are a copy.
 */
export async function fork(pool: Pool, { bodies }: ForkOptions): Promise<PoolId> {
  if (pool.volatile) throw new PoolRefusedError('foreign', 'the catalog is in memory and cannot have been copied')
  if ((await pool.record()) === undefined)
    throw new PoolRefusedError('foreign', 'there is no pool here that could be forked')
  // Not the pool's own lease: what that one refuses is what is put right here.
  const lease = await pool.catalog.lease()
  if (lease === undefined) throw busy(pool, 'a sweep or a backup is under way; try again')
  try {
    return await pool.fork(bodies === 'copied')
  } finally {
    await pool.catalog.releaseLease(lease)
  }
}

/**
 * Runs the copying while no sweep, maintenance or drop runs in any process. Catalog first, then bodies: whatever the copied catalog
 * names is still there when the bodies are copied. The signal fires if that cannot be promised any more; the copy is worthless then.
 * @throws EngineError `conflict` if a sweep is under way, or if the right to hold still was lost before the copying ended.
 */
export async function backup<T>(
  pool: Pool,
  copy: (signal: AbortSignal) => Promise<T> | T,
  signals: readonly AbortSignal[]
): Promise<T> {
  await pool.establish()
  const lease = await pool.lease()
  if (lease === undefined) throw busy(pool, 'a sweep or another backup is under way; try again')
  try {
    const copied = await copy(AbortSignal.any([lease.lost, ...signals]))
    if (!lease.lost.aborted) return copied
    throw busy(pool, 'the right to hold still was lost while the copy was made; make it again', lease.lost.reason)
  } finally {
    await pool.catalog.releaseLease(lease)
  }
}

function busy({ catalog }: Pool, advice: string, cause?: unknown): EngineError {
  return new EngineError(catalog.name, 'lease', 'conflict', advice, { cause })
}
