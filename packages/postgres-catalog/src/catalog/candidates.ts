/**
 * Candidates: entries that nobody protects, found by joining what lies in the order of keys. Entries, pins, live keys, tables of the
 * application and the window are each read once, side by side, so that an entry costs a step in each and no search; nothing is
 * sorted or kept, however many entries a step looks at. Only the keys of candidates come back, in one text.
 *
 * The plan is asked for, since the server would make another one for tables that nobody has counted yet: without hashes and nested
 * loops it merges. Looked up key by key a sweep of a million took 1.0 microseconds an entry, this one 0.2.
 */
import { type BlobKey, type CandidatePage, type Catalog, digestOf } from '@alkblobs/core/engine'
import type { Connection } from '../connection.js'
import type { Pool } from '../pool.js'
import { EMPTY } from './entries.js'
import type { Leases } from './lease.js'
import type { LiveKeys } from './live.js'
import { type Judgement, judged, type Tables } from './liveness.js'
import { Pace } from './pace.js'

/** What besides pins calls an entry live. */
interface Judges {
  readonly live: LiveKeys | undefined
  readonly tables: Judgement
}

/** Above all keys, which have 32 bytes. */
const TOP = `'\\x${'ff'.repeat(33)}'::bytea`
const upTo = (key: string, step: string) =>
  `${key} > $1::bytea AND ${key} <= coalesce((SELECT key FROM ${step}), ${TOP})`

/**
 * `bound` ends what is looked at, `stop` what is answered for: less if there were as many candidates as may be answered. An entry whose row is
 * not cancelled waits, and is counted from the window; one that is cancelled is ended by the next executing sweep. A pin counts by the
 * time the statement came, not by a clock that goes on: what the server may not ask twice it would not join.
 */
const statementOf = (judges: Judges) => `
  WITH bound AS MATERIALIZED (
    SELECT key FROM $.entries WHERE key > $1::bytea ORDER BY key OFFSET $2::bigint - 1 LIMIT 1
  ), found AS MATERIALIZED (
    SELECT e.key, w.key IS NOT NULL AS is_cancelled FROM $.entries e
    LEFT JOIN $.gc_window w ON w.key = e.key AND ${upTo('w.key', 'bound')} AND ${IS_SWEEPS}
    WHERE ${upTo('e.key', 'bound')} AND w.cancelled IS NOT FALSE AND ${unprotected('e.key', judges)}
    ORDER BY e.key LIMIT $3::bigint
  ), last AS MATERIALIZED (
    SELECT key FROM found ORDER BY key OFFSET $3::bigint - 1
  ), stop AS MATERIALIZED (
    SELECT coalesce((SELECT key FROM last), (SELECT key FROM bound)) AS key
  )
  SELECT CASE WHEN EXISTS (SELECT 1 FROM bound) AND NOT EXISTS (SELECT 1 FROM last) THEN $2::bigint
              ELSE (SELECT count(*) FROM $.entries e WHERE ${upTo('e.key', 'stop')}) END,
         (SELECT count(*) FROM $.gc_window w WHERE ${upTo('w.key', 'stop')} AND ${IS_SWEEPS} AND NOT w.cancelled
          AND ${HAS_ENTRY} AND ${unprotected('w.key', judges)}),
         (SELECT coalesce(string_agg(encode(key, 'hex'), '' ORDER BY key), '') FROM found WHERE is_cancelled),
         (SELECT coalesce(string_agg(encode(key, 'hex'), '' ORDER BY key), '') FROM found WHERE NOT is_cancelled),
         (SELECT encode(key, 'hex') FROM stop)`
/** Nothing is less than ''. Said so, because for `=` the server may take the index of what is due and read it from end to end. */
const IS_SWEEPS = "w.mark <= ''"
/** Whether there is a row for a key of this step. */
const isIn = (relation: string, alias: string, key: string, condition = 'true') => `EXISTS (
    SELECT 1 FROM ${relation} ${alias} WHERE ${alias}.key = ${key} AND ${upTo(`${alias}.key`, 'bound')} AND ${condition})`
const HAS_ENTRY = isIn('$.entries', 'e', 'w.key')

function unprotected(key: string, { live, tables }: Judges): string {
  const protections = [isIn('$.gc_pins', 'p', key, 'p.expires_at > statement_timestamp()')]
  if (live?.isFilled === true) protections.push(isIn('pg_temp.alkblobs_live', 'l', key))
  const sources = tables.unreferenced(key, column => upTo(column, 'bound'))
  return [...protections.map(protection => `NOT ${protection}`), ...sources].join(' AND ')
}

/**
 * What lies in no order is read into a hash, once for each step. Its memory is for a quarter of a million keys; more of them go through files.
 */
const settingsFor = ({ live, tables }: Judges) =>
  tables.isOrdered && (live?.isFilled !== true || live.isOrdered) ? IN_ORDER : HASHED
const IN_ORDER = 'SET LOCAL enable_nestloop = off; SET LOCAL enable_hashjoin = off'
const HASHED = "SET LOCAL enable_nestloop = off; SET LOCAL enable_seqscan = on; SET LOCAL work_mem = '32MB'"

type Row = [scanned: bigint, waiting: bigint, cancelled: string, keys: string, stop: string | null]

const NOBODY: CandidatePage = { scanned: 0, live: 0, alreadyStaged: 0, cancelled: [], keys: [], next: undefined }
/** Hexadecimal digits of a key. */
const HEX = 64

export function candidatesOf(pool: Pool, leases: Leases, tables: Tables): Pick<Catalog, 'candidates'> {
  const paceOfDryRuns = new Pace()
  return {
    async candidates(lease, after, limit, call) {
      const held = lease && leases.held(lease)
      await held?.live?.prepare(call)
      // A dry run reads the tables through with its first page.
      const seen = held?.readThrough ?? (after === undefined ? new Set<object>() : undefined)
      const pace = held?.pace ?? paceOfDryRuns
      return (held ?? pool).write(
        call,
        () => NOBODY,
        async at => {
          const judges = { live: held?.live, tables: await tables.judge(at, seen) }
          const count = pace.countFrom(after, limit)
          const startedMs = performance.now()
          const found = await page(pool, at, judges, { after, count, limit })
          pace.took(found, count, performance.now() - startedMs, call.deadlineMs - startedMs)
          return found
        }
      )
    }
  }
}

/** Looks at `count` entries, fewer if there are `limit` candidates among them. */
async function page(
  pool: Pool,
  at: Connection,
  judges: Judges,
  { after, count, limit }: { readonly after: string | undefined; readonly count: number; readonly limit: number }
): Promise<CandidatePage> {
  const from = after === undefined ? EMPTY : digestOf(after as BlobKey)
  const [, row] = await judged(judges.tables.conditionsFor('e.key'), () =>
    Promise.all([at.run(settingsFor(judges)), at.row<Row>(statementOf(judges), from, count, limit)])
  )
  const [scanned, waiting, ...digits] = row as Row
  const [cancelled, keys] = [keysIn(pool, digits[0]), keysIn(pool, digits[1])]
  const alreadyStaged = Number(waiting) + cancelled.length
  return {
    scanned: Number(scanned),
    live: Number(scanned) - alreadyStaged - keys.length,
    alreadyStaged,
    cancelled,
    keys,
    next: digits[2] === null ? undefined : pool.keyOf(digits[2])
  }
}

function keysIn(pool: Pool, digits: string): BlobKey[] {
  const keys: BlobKey[] = []
  for (let at = 0; at < digits.length; at += HEX) keys.push(pool.keyOf(digits.slice(at, at + HEX)))
  return keys
}
