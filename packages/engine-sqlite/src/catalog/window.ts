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
 * One page of keys in their written form, each followed by what protects it: 1 a pin, 2 a row, 3 a cancelled row, 0 nothing. As one text:
 * a row and its values cost twice as much as finding them (0.57 microseconds a key in all, 0.28 as text). Its last key is asked for by
 * name, for SQLite promises no order to what it joins.
 */
const CANDIDATES = `
  SELECT lower(group_concat(? || hex(key) || protection, '')), lower(hex(max(key))) FROM (
    SELECT key, CASE
      WHEN EXISTS (SELECT 1 FROM gc_pins p WHERE p.key = e.key AND p.expires_at > ?) THEN 1
      ELSE coalesce((SELECT 2 + cancelled FROM gc_window w WHERE w.key = e.key AND w.mark = ''), 0) END AS protection
    FROM entries e WHERE key > ? ORDER BY key LIMIT ?)`
const [PINNED, WAITING, CANCELLED] = ['1', '2', '3']
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
  const [text, last] = at.row<[string | null, string]>(CANDIDATES, pool.keyOf(''), Date.now(), from, limit) ?? [
    null,
    ''
  ]
  if (text === null) return NOBODY
  const lastKey = pool.keyOf(last)
  const { length } = lastKey
  const scanned = text.length / (length + 1)
  let live = 0
  let waiting = 0
  const keys: BlobKey[] = []
  const cancelled: BlobKey[] = []
  for (let start = 0; start < text.length; start += length + 1) {
    const protection = text[start + length]
    if (protection === PINNED) live++
    else if (protection === WAITING) waiting++
    else (protection === CANCELLED ? cancelled : keys).push(text.slice(start, start + length) as BlobKey)
  }
  const next = scanned < limit ? undefined : lastKey
  return { scanned, live, alreadyStaged: waiting + cancelled.length, cancelled, keys, next }
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
