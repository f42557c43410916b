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
  type CandidatePage,
  type Catalog,
  type DeleteMark,
  type DuePage,
  digestOf,
  type Locator
} from '@alkblobs/core/engine'
import type { Connection } from '../connection.js'
import type { Pool } from '../pool.js'
import { giveUpAt, isContention, pause } from '../waiting.js'
import { EMPTY, entryOf } from './entries.js'
import { areKept, KEPT_MS } from './kept.js'
import type { Leases } from './lease.js'
import type { LiveKeys } from './live.js'
import { judged, type Tables } from './liveness.js'
import { checkStamp } from './meta.js'

/**
 * Pages of keys, judged and summed up by the server, one row each: only the keys that nobody protects come back, in one text. What is
 * in order of keys is read by the range of all pages, so that a whole sweep reads it once.
 */
const candidates = ({ hasLiveKeys, conditions }: Judges) => `
  WITH page AS MATERIALIZED (
    SELECT key, (row_number() OVER (ORDER BY key) - 1) / $3::bigint AS n
    FROM (SELECT key FROM $.entries WHERE key > $1::bytea ORDER BY key LIMIT $2::bigint) k
  ), last AS MATERIALIZED (
    SELECT key FROM page ORDER BY key DESC LIMIT 1
  ), judged AS (
    SELECT e.key, e.n, CASE
      WHEN e.key IN (SELECT p.key FROM $.gc_pins p WHERE ${inPage('p')} AND p.expires_at > clock_timestamp()) THEN 1
      ${hasLiveKeys ? `WHEN e.key IN (SELECT l.key FROM pg_temp.alkblobs_live l WHERE ${inPage('l')}) THEN 1` : ''}
      ${conditions.map(condition => `WHEN ${condition} THEN 1`).join('\n      ')}
      WHEN e.key IN (SELECT w.key FROM $.gc_window w WHERE ${inPage('w')} AND ${IS_SWEEPS} AND w.cancelled) THEN 3
      WHEN e.key IN (SELECT w.key FROM $.gc_window w WHERE ${inPage('w')} AND ${IS_SWEEPS}) THEN 2
      ELSE 0 END AS protection
    FROM page e
  )
  SELECT count(*), count(*) FILTER (WHERE protection = 1), count(*) FILTER (WHERE protection >= 2),
         coalesce(string_agg(encode(key, 'hex'), '' ORDER BY key) FILTER (WHERE protection = 3), ''),
         coalesce(string_agg(encode(key, 'hex'), '' ORDER BY key) FILTER (WHERE protection = 0), ''),
         max(encode(key, 'hex') COLLATE "C")
  FROM judged GROUP BY n ORDER BY n`
/** Nothing is less than ''. Said so, because for `=` the server may take the index of what is due and read it from end to end. */
const IS_SWEEPS = "w.mark <= ''"
const inPage = (table: string) => `${table}.key > $1::bytea AND ${table}.key <= (SELECT key FROM last)`
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

const NOBODY: CandidatePage = { scanned: 0, live: 0, alreadyStaged: 0, cancelled: [], keys: [], next: undefined }
/** A sweep's pages are looked at several together; whoever asks for short ones wants them as they are now. */
const PAGES_AHEAD = 8
const LIMIT_AHEAD_MIN = 1_000
/** Hexadecimal digits of a key. */
const HEX = 64

export function windowOf(
  pool: Pool,
  leases: Leases,
  tables: Tables
): Pick<Catalog, 'candidates' | 'stageCandidates' | 'due' | 'mark'> {
  return {
    candidates: async (lease, after, limit, call) => {
      const nobody = () => NOBODY
      if (lease === undefined) {
        // A dry run reads the tables through with its first page.
        const seen = after === undefined ? new Set<object>() : undefined
        const look = async (at: Connection) =>
          (await candidatePages(pool, at, await judgesOf(at, tables, seen), { after, limit, pages: 1 }))[0]
        return (await pool.ask(call, nobody, look)) ?? NOBODY
      }
      const held = leases.held(lease)
      await held.live?.prepare(call)
      const known = held.ahead.take(after, limit)
      if (known !== undefined) return known
      const pages = limit < LIMIT_AHEAD_MIN ? 1 : PAGES_AHEAD
      const look = async (at: Connection) =>
        candidatePages(pool, at, await judgesOf(at, tables, held.readThrough, held.live), { after, limit, pages })
      return held.ahead.keep(await held.ask(call, () => [NOBODY], look), limit)
    },
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

/** What besides pins calls the entry `e` live. */
export interface Judges {
  readonly hasLiveKeys: boolean
  /** One for each table of the application. */
  readonly conditions: readonly string[]
}

/** `seen`: tables that were read through for values that are no keys; the others are now, if it is given. */
export async function judgesOf(
  at: Connection,
  tables: Tables,
  seen: Set<object> | undefined,
  live?: LiveKeys
): Promise<Judges> {
  const { conditionsFor } = await tables.judge(at, seen)
  return { hasLiveKeys: live?.isFilled === true, conditions: conditionsFor('e.key') }
}

/** The pages from here on, `pages` of them at most; one at least. */
async function candidatePages(
  pool: Pool,
  at: Connection,
  judges: Judges,
  { after, limit, pages }: { readonly after: string | undefined; readonly limit: number; readonly pages: number }
): Promise<CandidatePage[]> {
  const from = after === undefined ? EMPTY : digestOf(after as BlobKey)
  const rows = await judged(judges.conditions, () =>
    at.rows<[bigint, bigint, bigint, string, string, string]>(candidates(judges), from, limit * pages, limit)
  )
  const found = rows.map(([scanned, live, alreadyStaged, cancelled, keys, last]) => ({
    scanned: Number(scanned),
    live: Number(live),
    alreadyStaged: Number(alreadyStaged),
    cancelled: keysIn(pool, cancelled),
    keys: keysIn(pool, keys),
    next: Number(scanned) < limit ? undefined : pool.keyOf(last)
  }))
  return found.length === 0 ? [NOBODY] : found
}

function keysIn(pool: Pool, digits: string): BlobKey[] {
  const keys: BlobKey[] = []
  for (let at = 0; at < digits.length; at += HEX) keys.push(pool.keyOf(digits.slice(at, at + HEX)))
  return keys
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
