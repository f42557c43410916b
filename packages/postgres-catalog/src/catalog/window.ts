/**
 * The window: candidates that wait out the window delay. A row with mark '' is a sweep's; any other is a direct delete under
 * way. Rows are only marked as cancelled by puts and pins; who executes ends them.
 *
 * Whoever writes a row has locked the entry FOR UPDATE before, and looked for pins after that: no put or pin can be half-way
 * between its look at the window and its commit. So a put either sees the row and cancels it, or is seen by who writes it.
 */
import { randomBytes } from 'node:crypto'
import {
  type BlobKey,
  type Call,
  type Catalog,
  type DeleteMark,
  type DuePage,
  digestOf,
  type Locator
} from '@alkblobs/core/engine'
import type { Connection } from '../connection.js'
import type { Pool } from '../pool.js'
import { giveUpAt, isContention, pause } from '../waiting.js'
import { entryOf } from './entries.js'
import { areKept, KEPT_MS } from './kept.js'
import type { Leases } from './lease.js'
import { checkStamp } from './meta.js'

const LOCK = `
  SELECT encode(key, 'hex') FROM (
    SELECT key FROM $.entries WHERE key = ANY ($1::bytea[]) ORDER BY key FOR UPDATE SKIP LOCKED
  ) e`
const STAGE = `
  INSERT INTO $.gc_window (key, mark, staged_at, delay_ms)
  SELECT key, '', statement_timestamp(), $2::bigint FROM unnest($1::bytea[]) AS i (key)
  WHERE (SELECT true FROM $.gc_pins p WHERE p.key = i.key AND p.expires_at > clock_timestamp() LIMIT 1) IS NULL
  ORDER BY key
  ON CONFLICT (key, mark) DO NOTHING RETURNING encode(key, 'hex')`
/** Times travel as whole microseconds, which is what the server keeps. */
const DUE = `
  SELECT (extract(epoch FROM staged_at) * 1000000)::bigint, encode(key, 'hex') FROM $.gc_window
  WHERE mark = '' AND (staged_at, key) > (timestamptz 'epoch' + $1::bigint * interval '1 microsecond', $2::bytea)
    AND (cancelled OR staged_at + greatest(delay_ms, (SELECT window_delay_ms FROM $.meta)) * interval '1 millisecond'
         <= clock_timestamp())
  ORDER BY staged_at, key LIMIT $3::bigint`
const LOCK_ONE = 'SELECT length, octet_length(body), locator FROM $.entries WHERE key = $1::bytea FOR UPDATE'
const PATIENCE = "SELECT set_config('lock_timeout', $1, true)"
const MARK = `
  INSERT INTO $.gc_window (key, mark, staged_at, delay_ms)
  SELECT $1::bytea, $2, clock_timestamp(), 0
  WHERE NOT EXISTS (SELECT 1 FROM $.gc_pins p WHERE p.key = $1::bytea AND p.expires_at > clock_timestamp())`

export function windowOf(pool: Pool, leases: Leases): Pick<Catalog, 'stageCandidates' | 'due' | 'mark'> {
  return {
    stageCandidates: async (lease, keys, call) =>
      leases.held(lease).write<BlobKey[]>(
        call,
        () => [],
        async at => {
          const delayMs = await checkStamp(at)
          const locked = await at.rows<[string]>(LOCK, keys.map(digestOf))
          if (locked.length === 0) return []
          const digests = locked.map(([hex]) => Buffer.from(hex, 'hex'))
          const staged = await at.rows<[string]>(STAGE, digests, delayMs)
          return staged.map(([hex]) => pool.keyOf(hex))
        }
      ),
    due: async (lease, after, limit, call) =>
      leases.held(lease).ask<DuePage>(
        call,
        () => ({ keys: [], next: undefined }),
        at => duePage(pool, at, after, limit)
      ),
    mark: (key, call) => mark(pool, key, call)
  }
}

/** The cursor is the time of staging and the digest of the last row answered, `1700000000000000:00ff…`. */
async function duePage(pool: Pool, at: Connection, after: string | undefined, limit: number): Promise<DuePage> {
  const [time, hexAfter] = (after ?? '-1:').split(':') as [string, string]
  const rows = await at.rows<[bigint, string]>(DUE, time, Buffer.from(hexAfter, 'hex'), limit)
  const last = rows.length < limit ? undefined : rows.at(-1)
  return { keys: rows.map(([, hex]) => pool.keyOf(hex)), next: last && `${last[0]}:${last[1]}` }
}

type Marked = Awaited<ReturnType<Catalog['mark']>>

/**
 * Marks an entry, and waits for whoever has locked it. Puts and pins are over in a moment, and have then said what they protect; one that
 * goes on is in a transaction of the application's, and protects.
 */
async function mark(pool: Pool, key: BlobKey, call: Call): Promise<Marked> {
  const until = giveUpAt(call, pool.lockTimeoutMs)
  for (let attempts = 1; ; attempts++) {
    try {
      return await pool.once<Marked>(
        call,
        () => 'absent',
        at => markOne(at, key, Math.min(KEPT_MS, pool.lockTimeoutMs))
      )
    } catch (error) {
      if (!isContention(error)) throw error
      if (await areKept(pool, [key], call)) return 'pinned'
      if (performance.now() >= until) throw error
    }
    await pause(attempts, until)
  }
}

async function markOne(at: Connection, key: BlobKey, patienceMs: number): Promise<Marked> {
  await Promise.all([at.rows(PATIENCE, `${Math.max(1, Math.ceil(patienceMs))}ms`), checkStamp(at)])
  const digest = digestOf(key)
  const row = await at.row<[bigint, number | null, Locator | null]>(LOCK_ONE, digest)
  if (row === undefined) return 'absent'
  const mark = randomBytes(16).toString('hex') as DeleteMark
  if ((await at.run(MARK, digest, mark)) === 0) return 'pinned'
  return { mark, entry: entryOf(key, ...row) }
}
