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

/** One page of keys, with what protects each: 1 a pin, 2 a row, 3 a cancelled row. */
const CANDIDATES = `
  SELECT lower(hex(key)), CASE
    WHEN EXISTS (SELECT 1 FROM gc_pins p WHERE p.key = e.key AND p.expires_at > ?) THEN 1
    ELSE coalesce((SELECT 2 + cancelled FROM gc_window w WHERE w.key = e.key AND w.mark = ''), 0) END
  FROM entries e WHERE key > ? ORDER BY key LIMIT ?`
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
  const rows = at.rows<[string, number]>(CANDIDATES, Date.now(), from, limit)
  const counts: [number, number, number, number] = [0, 0, 0, 0]
  const keys: BlobKey[] = []
  const cancelled: BlobKey[] = []
  for (const [hex, protection] of rows) {
    counts[protection as 0 | 1 | 2 | 3]++
    if (protection === 0) keys.push(pool.keyOf(hex))
    if (protection === 3) cancelled.push(pool.keyOf(hex))
  }
  const [, live, waiting] = counts
  const last = rows.length < limit ? undefined : rows.at(-1)?.[0]
  return {
    scanned: rows.length,
    live,
    alreadyStaged: waiting + cancelled.length,
    cancelled,
    keys,
    next: last === undefined ? undefined : pool.keyOf(last)
  }
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
