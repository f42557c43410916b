/**
 * Two catalogs as one: kv in memory beside a large tier that keeps a durable catalog of its own.
 *
 * Each key has one authority, the catalog that holds its entry: there lie its pins, its window row and its removal. Small keys
 * are memory's and end with the process. Large ones, stages, trash, the pool's record and the lease are the durable catalog's, which
 * also gives the form: memory runs it too. A key that both hold (stores with different thresholds put it at the same time) is
 * two entries of the same bytes, each safe by itself; the near one is read.
 *
 * Memory is asked first wherever either could answer: it costs nothing.
 */
import type { BodyStore, Catalog, Engine } from '../engine.js'
import { entriesOf } from './entries.js'
import { metaOf } from './meta.js'
import { protectingOf } from './protecting.js'
import { removingOf } from './removing.js'
import { PairLeases } from './sides.js'
import { windowOf } from './window.js'

/** The catalogs of a pair. */
export interface Pair {
  /** In memory. */
  readonly near: Catalog
  /** Durable. */
  readonly far: Catalog
  /** Of the large tier. */
  readonly bodies: BodyStore
}

/** An engine made of two, whose catalog is the pair. Closing it closes neither: both stay their owners'. */
export function pairedEngine(near: Engine, far: Engine, pair: Pair): Engine & { readonly catalog: Catalog } {
  const leases = new PairLeases(pair)
  const { far: large } = pair
  return {
    name: `${near.name} + ${far.name}`,
    version: far.version,
    durability: near.durability,
    classify(error) {
      const code = near.classify(error)
      return code === 'unknown' ? far.classify(error) : code
    },
    async close() {},
    catalog: {
      form: large.form,
      inlineLengthMax: pair.near.inlineLengthMax,
      meta: metaOf(pair),
      ...entriesOf(pair),
      ...protectingOf(pair),
      ...windowOf(pair, leases),
      ...removingOf(pair, leases),
      // Bodies are the large tier's, and so is all that is known of them.
      stage: (stages, call) => large.stage(stages, call),
      staged: (stages, call) => large.staged(stages, call),
      unstage: (stages, call) => large.unstage(stages, call),
      trash: (after, limit, call) => large.trash(after, limit, call),
      known: (found, call) => large.known(found, call),
      discard: (found, call) => large.discard(found, call),
      dropped: (records, call) => large.dropped(records, call),
      ...(large.sqlLiveness && { sqlLiveness: large.sqlLiveness })
    }
  }
}
