/**
 * Trash: names of bodies that no entry uses, until they are dropped. A body may be dropped only when the transaction that
 * trashed it is on disk, or a power loss could bring back the entry and not its bytes. So a row remembers whether it was
 * written by a synced transaction, and if not, one synced transaction that touches it makes it so before it is answered.
 */
import {
  type BlobKey,
  type Catalog,
  digestOf,
  type Found,
  type Locator,
  type StageId,
  type Trashed
} from '@alkblobs/core/engine'
import type { Connection } from '../connection.js'
import { noPool } from '../group-commit.js'
import type { Pool } from '../pool.js'
import type { Transaction } from '../transaction.js'
import type { Row } from './entries.js'
import { checkStamp } from './meta.js'

const DISCARD = `
  INSERT INTO trash (what, key, length, not_before, durable) VALUES (?, ?, ?, ?, ?) ON CONFLICT (what) DO NOTHING`
/** Two statements, for a name may be of any length: not even the empty one is before all others. */
const page = (after: string) => `
  SELECT what, lower(hex(key)), length, attempts, durable FROM trash
  WHERE ${after}not_before <= ? ORDER BY what LIMIT ?`
const FIRST_PAGE = page('')
const NEXT_PAGE = page('what > ? AND ')
const MAKE_DURABLE = 'UPDATE trash SET durable = 1 WHERE durable = 0'
const DROPPED = 'DELETE FROM trash WHERE what = ?'
const PUT_OFF = 'UPDATE trash SET attempts = attempts + 1, not_before = ? WHERE what = ?'
const END_BODY = 'DELETE FROM bodies WHERE id = ?'
const IN_TRASH = 'SELECT 1 FROM trash WHERE what = ?'
const HAS_STAGE = 'SELECT 1 FROM stages WHERE id = ?'
const LIES_THERE = 'SELECT 1 FROM entries WHERE key = ? AND locator = ?'

interface Discarded {
  readonly what: Locator | StageId
  readonly digest?: Uint8Array
  readonly length?: number
  readonly delayMs?: number
}

/** Puts a name into trash, to be dropped after `delayMs`. One that is there already keeps its row. */
export function discard({ at, now }: Transaction, { what, digest, length, delayMs = 0 }: Discarded): void {
  at.run(DISCARD, what, digest ?? null, length ?? null, now + delayMs, at.durability === 'disk' ? 1 : 0)
}

/** Ends where the bytes of an entry lie: an inline body now, another one by way of trash. */
export function endBytes(transaction: Transaction, { entry, body }: Row, digest: Uint8Array, delayMs: number): void {
  const { place, length } = entry
  if (body !== null) transaction.at.run(END_BODY, body)
  if (place.tier === 'large') discard(transaction, { what: place.locator, digest, length, delayMs })
}

export function trashOf(pool: Pool): Pick<Catalog, 'trash' | 'known' | 'discard' | 'dropped'> {
  return {
    async trash(after, limit, call) {
      const [page, ...from] = after === undefined ? [FIRST_PAGE] : [NEXT_PAGE, after]
      const rows = await pool.read(call, [], at => at.rows<TrashRow>(page, ...from, Date.now(), limit))
      const isSynced = rows.every(([, , , , durable]) => durable === 1)
      if (!isSynced) await pool.write(call, { absent: noPool, synced: true, run: ({ at }) => at.run(MAKE_DURABLE) })
      return rows.map(row => trashedOf(pool, row))
    },
    known: (found, call) =>
      pool.read(
        call,
        found.map(() => false),
        at => found.map(one => isKnown(at, one))
      ),
    async discard(found, call) {
      await pool.writeEach(call, found, some => ({
        absent: noPool,
        run: transaction => {
          checkStamp(transaction)
          for (const one of some) if (!isKnown(transaction.at, one)) discard(transaction, namesOf(one))
          return []
        }
      }))
    },
    async dropped(records, call) {
      await pool.writeEach(call, records, some => ({
        absent: () => [],
        run: ({ at, now }) => {
          for (const { what, retryAfterMs } of some) {
            if (retryAfterMs === undefined) at.run(DROPPED, what)
            else at.run(PUT_OFF, now + retryAfterMs, what)
          }
          return []
        }
      }))
    }
  }
}

type TrashRow = [what: Locator | StageId, hex: string | null, length: number | null, attempts: number, durable: number]

function trashedOf(pool: Pool, [what, hex, length, attempts]: TrashRow): Trashed {
  const key: BlobKey | undefined = hex ? pool.keyOf(hex) : undefined
  return { what, key, length: length ?? undefined, attempts }
}

function isKnown(at: Connection, { stage, sealed }: Found): boolean {
  if (at.row(HAS_STAGE, stage) !== undefined || at.row(IN_TRASH, stage) !== undefined) return true
  if (sealed === undefined) return false
  if (at.row(IN_TRASH, sealed.locator) !== undefined) return true
  return at.row(LIES_THERE, digestOf(sealed.key), sealed.locator) !== undefined
}

function namesOf({ stage, sealed }: Found): Discarded {
  if (sealed === undefined) return { what: stage }
  return { what: sealed.locator, digest: digestOf(sealed.key), length: sealed.length }
}
