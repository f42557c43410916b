/** Arbitration, the last look before a removal, and the removal, in one transaction. The only place where entries end. */
import { type Catalog, digestOf, type Lease, type Place, type Removal, type RemoveOutcome } from '@alkblobs/core/engine'
import { noPool } from '../group-commit.js'
import type { Pool } from '../pool.js'
import type { Transaction } from '../transaction.js'
import { findRow, isSamePlace, type Row } from './entries.js'
import type { Leases } from './lease.js'
import { checkStamp } from './meta.js'
import { isPinned } from './pins.js'
import { endBytes } from './trash.js'

const IS_CANCELLED = 'SELECT cancelled FROM gc_window WHERE key = ? AND mark = ?'
const END_ROW = 'DELETE FROM gc_window WHERE key = ? AND mark = ?'
const END_ENTRY = 'DELETE FROM entries WHERE key = ?'
const END_PINS = 'DELETE FROM gc_pins WHERE key = ?'

export function removeOf(pool: Pool, leases: Leases): Pick<Catalog, 'remove'> {
  return {
    remove: (items, trashDelayMs, lease, call) =>
      pool.writeEach(call, items, some => ({
        absent: noPool,
        run: transaction => {
          checkStamp(transaction)
          checkLease(leases, lease, some, transaction)
          return some.map(item => removeOne(transaction, item, trashDelayMs))
        }
      }))
  }
}

/** A lease that is given must be held even for a marked item: it is a sweep's. */
function checkLease(
  leases: Leases,
  lease: Lease | undefined,
  items: readonly Removal[],
  transaction: Transaction
): void {
  if (lease !== undefined || items.some(({ kind }) => kind === 'candidate')) leases.check(lease, transaction)
}

function removeOne(transaction: Transaction, item: Removal, trashDelayMs: number): RemoveOutcome {
  const { at, now } = transaction
  const digest = digestOf(item.key)
  const mark = item.kind === 'marked' ? item.mark : ''
  const row = at.row<[number]>(IS_CANCELLED, digest, mark)
  const found = findRow(at, item.key, digest)
  at.run(END_ROW, digest, mark)
  if (item.kind === 'marked' && !liesAt(found, item.at)) return { outcome: 'absent' }
  // Without its row nothing says that the key was staged or marked, so nothing says that it may go.
  if (row === undefined || row[0] === 1) return { outcome: 'cancelled' }
  if (found === undefined) return { outcome: 'deleted', entry: undefined }
  if (item.live || isPinned(at, digest, now)) return { outcome: 'cancelled' }
  take(transaction, found, digest, trashDelayMs)
  return { outcome: 'deleted', entry: found.entry }
}

function liesAt(found: Row | undefined, place: Place | undefined): boolean {
  return found !== undefined && (place === undefined || isSamePlace(found.entry.place, place))
}

/** Ends the entry, its bytes and its pins, which have all expired. */
function take(transaction: Transaction, found: Row, digest: Uint8Array, trashDelayMs: number): void {
  endBytes(transaction, found, digest, trashDelayMs)
  transaction.at.run(END_ENTRY, digest)
  transaction.at.run(END_PINS, digest)
}
