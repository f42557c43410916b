/**
 * Arbitration and removal, by the catalog whose row or mark it is: `mark`, `remove`.
 *
 * The application's tables are judged by the durable catalog in its own transaction. For keys in memory they are asked just
 * before, like a source that answers: whoever wrote a reference since held a pin, and that has cancelled the row or mark.
 */
import type { Call, Catalog, Lease, Removal, RemoveOutcome } from '../engine.js'
import type { Pair } from './index.js'
import { type PairLeases, type Side, sideOf, tag } from './sides.js'

export function removingOf(pair: Pair, leases: PairLeases): Pick<Catalog, 'mark' | 'remove'> {
  return {
    async mark(key, call) {
      for (const side of ['near', 'far'] as const) {
        const marked = await pair[side].mark(key, call)
        if (marked === 'pinned') return marked
        if (marked !== 'absent') return { ...marked, mark: tag(side, marked.mark) }
      }
      return 'absent'
    },

    async remove(items, trashDelayMs, lease, call) {
      const held = lease && leases.held(lease)
      const placed = items.map(item => placedOf(item, held?.due))
      const ofSide = (side: Side) => placed.flatMap(each => (each.side === side ? [each.item] : []))
      // The far one first: it is the one that can fail, and then nothing of memory is gone uncounted.
      const far = await removeFrom(pair.far, ofSide('far'), trashDelayMs, held?.far, call)
      const judged = await judgedByTables(pair, ofSide('near'), held?.far, call)
      const near = await removeFrom(pair.near, judged, trashDelayMs, held?.near, call)
      const outcomes = { near: near.values(), far: far.values() }
      return placed.map(({ side }) => outcomes[side].next().value as RemoveOutcome)
    }
  }
}

interface Placed {
  readonly side: Side
  readonly item: Removal
}

function placedOf(item: Removal, due: { readonly side: Side; readonly keys: ReadonlySet<string> } | undefined): Placed {
  if (item.kind === 'candidate') return { side: due?.keys.has(item.key) ? due.side : 'near', item }
  const { side, name } = sideOf(item.mark)
  return { side, item: { ...item, mark: name as typeof item.mark } }
}

async function removeFrom(
  catalog: Catalog,
  items: readonly Removal[],
  trashDelayMs: number,
  lease: Lease | undefined,
  call: Call
): Promise<readonly RemoveOutcome[]> {
  return items.length === 0 ? [] : catalog.remove(items, trashDelayMs, lease, call)
}

/** @throws what the tables are refused for; marks have ended by then, as if what they name were live. */
async function judgedByTables(pair: Pair, items: readonly Removal[], lease: Lease | undefined, call: Call) {
  const { sqlLiveness } = pair.far
  const dead = items.filter(({ live }) => !live)
  if (sqlLiveness === undefined || dead.length === 0) return items
  try {
    const keys = dead.map(({ key }) => key)
    const live = new Set(await sqlLiveness.among(keys, lease, call))
    return items.map(item => (live.has(item.key) ? { ...item, live: true } : item))
  } catch (error) {
    const marked = items.flatMap(item => (item.kind === 'marked' ? [{ ...item, live: true }] : []))
    await removeFrom(pair.near, marked, 0, undefined, call)
    throw error
  }
}
