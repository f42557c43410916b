/**
 * The window: candidates that wait out the window delay. A row with mark '' is a sweep's; any other is a direct delete under
 * way. Rows are only marked as cancelled by puts and pins; who executes ends them.
 */
import { randomBytes } from 'node:crypto'
import {
  type BlobKey,
  type CandidatePage,
  type Catalog,
  type DeleteMark,
  type DuePage,
  digestOf
} from '@alkblobs/core/engine'
import type { Connection } from '../connection.js'
import type { Pool } from '../pool.js'
import type { Transaction } from '../transaction.js'
import { findRow } from './entries.js'
import type { Leases } from './lease.js'
import { checkStamp, windowDelayIn } from './meta.js'
import { isPinned } from './pins.js'

/**
 * One page of keys in their written form. As one text: a row and its values cost twice as much as finding them (0.57 microseconds a key in
 * all, 0.17 as text). Its last key is asked for by name, for SQLite promises no order to what it joins.
 */
const PAGE = `
  SELECT lower(group_concat(? || hex(key), '')), lower(hex(max(key)))
  FROM (SELECT key FROM entries WHERE key > ? ORDER BY key LIMIT ?)`
/** What protects some of them. Few are, and looking for two rows at each key was two fifths of what a page cost. */
const WINDOW_IN = "SELECT lower(hex(key)), cancelled FROM gc_window WHERE mark = '' AND key > ? AND key <= ? LIMIT ?"
/** The same key by key, where there are more rows than keys: entries that were deleted leave theirs, a million perhaps. */
const WINDOW_OF = `
  SELECT lower(hex(w.key)), w.cancelled FROM entries e CROSS JOIN gc_window w ON w.key = e.key AND w.mark = ''
  WHERE e.key > ? AND e.key <= ?`
const PINNED_IN = `
  SELECT lower(hex(key)) FROM gc_pins WHERE key > ? AND key <= ? GROUP BY key HAVING max(expires_at) > ?`
const STAGE_CANDIDATE = `
  INSERT INTO gc_window (key, mark, staged_at, delay_ms)
  SELECT key, '', ?, ? FROM entries e
  WHERE key = ? AND NOT EXISTS (SELECT 1 FROM gc_pins p WHERE p.key = e.key AND p.expires_at > ?)
  ON CONFLICT (key, mark) DO NOTHING`
const DUE = `
  SELECT staged_at, lower(hex(key)) FROM gc_window INDEXED BY gc_window_due
  WHERE mark = '' AND (staged_at, key) > (?, ?) AND (cancelled OR staged_at + max(delay_ms, ?) <= ?)
  ORDER BY staged_at, key LIMIT ?`
const MARK = 'INSERT INTO gc_window (key, mark, staged_at, delay_ms) VALUES (?, ?, ?, 0)'

type Protection = 'pin' | 'row' | 'cancelled row'

const EMPTY = new Uint8Array(0)
const NOBODY: CandidatePage = { scanned: 0, live: 0, alreadyStaged: 0, cancelled: [], keys: [], next: undefined }

export function windowOf(pool: Pool, leases: Leases): Pick<Catalog, 'candidates' | 'stageCandidates' | 'due' | 'mark'> {
  return {
    candidates: (lease, after, limit, call) =>
      pool.read(call, NOBODY, at => {
        if (lease !== undefined) leases.check(lease, { at })
        return candidatePage(pool, at, after, limit)
      }),
    stageCandidates: (lease, keys, call) =>
      pool.writeEach(call, keys, some => ({
        absent: () => [],
        run: transaction => {
          leases.check(lease, transaction)
          const delayMs = checkStamp(transaction)
          return some.filter(key => stageOne(transaction, key, delayMs))
        }
      })),
    due: (lease, after, limit, call) =>
      pool.read(call, { keys: [], next: undefined }, at => {
        leases.check(lease, { at })
        return duePage(pool, at, after, limit)
      }),
    mark: (key, call) =>
      pool.write(call, { absent: () => 'absent' as const, run: transaction => markOne(transaction, key) })
  }
}

function candidatePage(pool: Pool, at: Connection, after: string | undefined, limit: number): CandidatePage {
  const from = after === undefined ? EMPTY : digestOf(after as BlobKey)
  const [text, last] = at.row<[string | null, string]>(PAGE, pool.keyOf(''), from, limit) ?? [null, '']
  if (text === null) return NOBODY
  const lastKey = pool.keyOf(last)
  const { length } = lastKey
  const scanned = text.length / length
  // Looked for after the page: who is protected meanwhile is found, and who is not any more is judged as anybody.
  const protections = protectionsIn(pool, at, { from, last: digestOf(lastKey), scanned })
  let live = 0
  let waiting = 0
  const keys: BlobKey[] = []
  const cancelled: BlobKey[] = []
  for (let start = 0; start < text.length; start += length) {
    const key = text.slice(start, start + length) as BlobKey
    const protection = protections.size > 0 ? protections.get(key) : undefined
    if (protection === undefined) keys.push(key)
    else if (protection === 'pin') live++
    else if (protection === 'row') waiting++
    else cancelled.push(key)
  }
  const next = scanned < limit ? undefined : lastKey
  return { scanned, live, alreadyStaged: waiting + cancelled.length, cancelled, keys, next }
}

/** A page of entries: those behind `from` up to `last`. */
interface Page {
  readonly from: Uint8Array
  readonly last: Uint8Array
  readonly scanned: number
}

/** The keys of a page that have a pin, or else a sweep's row; perhaps others that have no entry. */
function protectionsIn(pool: Pool, at: Connection, { from, last, scanned }: Page): Map<string, Protection> {
  const found = new Map<string, Protection>()
  let rows = at.rows<[string, number]>(WINDOW_IN, from, last, scanned + 1)
  if (rows.length > scanned) rows = at.rows(WINDOW_OF, from, last)
  for (const [hex, cancelled] of rows) found.set(pool.keyOf(hex), cancelled === 0 ? 'row' : 'cancelled row')
  for (const [hex] of at.rows<[string]>(PINNED_IN, from, last, Date.now())) found.set(pool.keyOf(hex), 'pin')
  return found
}

function stageOne(transaction: Transaction, key: BlobKey, delayMs: number): boolean {
  const { at, now } = transaction
  transaction.candidateMade()
  return at.run(STAGE_CANDIDATE, now, delayMs, digestOf(key), now) > 0
}

/** The cursor is the time of staging and the digest of the last row answered, `1700000000000:00ff…`. */
function duePage(pool: Pool, at: Connection, after: string | undefined, limit: number): DuePage {
  const [time, hexAfter] = (after ?? '-1:').split(':') as [string, string]
  const rows = at.rows<[number, string]>(
    DUE,
    Number(time),
    Buffer.from(hexAfter, 'hex'),
    windowDelayIn(at),
    Date.now(),
    limit
  )
  const last = rows.length < limit ? undefined : rows.at(-1)
  return { keys: rows.map(([, hex]) => pool.keyOf(hex)), next: last && `${last[0]}:${last[1]}` }
}

function markOne(transaction: Transaction, key: BlobKey): Awaited<ReturnType<Catalog['mark']>> {
  checkStamp(transaction)
  const { at, now } = transaction
  const digest = digestOf(key)
  if (isPinned(at, digest, now)) return 'pinned'
  const found = findRow(at, key, digest)
  if (found === undefined) return 'absent'
  const mark = randomBytes(16).toString('hex') as DeleteMark
  at.run(MARK, digest, mark, now)
  transaction.candidateMade()
  return { mark, entry: found.entry }
}
