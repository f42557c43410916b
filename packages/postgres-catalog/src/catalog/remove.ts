/**
 * Arbitration, the last look before a removal, and the removal, in one transaction. The only place where entries end.
 *
 *   1. Entries are locked FOR UPDATE, in the order of keys; one that somebody has locked is left out: `busy`.
 *   2. Pins of those keys, expired or not, and the rows of the window are locked. A pin that somebody has locked counts as
 *      unexpired, for they may be renewing it; a row that somebody has locked makes its key `busy`.
 *   3. In a new statement, which sees everything committed before 2, all is looked at.
 *   4. What was decided is done.
 *
 * Nothing here waits for anybody, so there is nobody to be deadlocked with. Under a lease the transaction runs on its session.
 */
import {
  type Call,
  type Catalog,
  digestHexOf,
  digestOf,
  type Entry,
  type Lease,
  type Locator,
  type Place,
  type Removal,
  type RemoveOutcome
} from '@alkblobs/core/engine'
import type { Param } from '@alkblobs/postgres-session'
import type { Connection } from '../connection.js'
import { noPool, type Pool } from '../pool.js'
import { giveUpAt, pause, sqlStateOf } from '../waiting.js'
import { entryOf, isSamePlace } from './entries.js'
import { areKept, KEPT_MS } from './kept.js'
import type { HeldLease, Leases } from './lease.js'
import { judged, type Tables } from './liveness.js'
import { checkStamp } from './meta.js'

const LOCK_ENTRIES = `
  SELECT encode(key, 'hex') FROM (
    SELECT key FROM $.entries WHERE key = ANY ($1::bytea[]) ORDER BY key FOR UPDATE SKIP LOCKED
  ) e`
const LOCK_ROWS = `
  WITH pin AS MATERIALIZED (
    SELECT key FROM $.gc_pins WHERE key = ANY ($1::bytea[]) ORDER BY key, owner FOR UPDATE SKIP LOCKED
  ), row AS MATERIALIZED (
    SELECT w.key FROM $.gc_window w
    JOIN unnest($1::bytea[], $2::text[]) AS i (key, mark) ON w.key = i.key AND w.mark = i.mark
    ORDER BY w.key, w.mark FOR UPDATE OF w SKIP LOCKED
  )
  SELECT 'pin', encode(key, 'hex'), count(*) FROM pin GROUP BY key
  UNION ALL SELECT 'row', encode(key, 'hex'), 1 FROM row`
const look = ({ hasLiveKeys, conditions }: Judges) => `
  SELECT encode(e.key, 'hex'), w.cancelled, n.length, octet_length(n.body), n.locator, n.key IS NOT NULL,
    (SELECT count(*) FROM $.gc_pins p WHERE p.key = e.key),
    (SELECT true FROM $.gc_pins p WHERE p.key = e.key AND p.expires_at > clock_timestamp() LIMIT 1) IS NOT NULL
    ${[...(hasLiveKeys ? [IS_LIVE_KEY] : []), ...conditions].map(condition => `OR ${condition}`).join('\n    ')}
  FROM unnest($1::bytea[], $2::text[]) AS e (key, mark)
  LEFT JOIN $.entries n ON n.key = e.key
  LEFT JOIN $.gc_window w ON w.key = e.key AND w.mark = e.mark`
const IS_LIVE_KEY = 'coalesce((SELECT true FROM pg_temp.alkblobs_live l WHERE l.key = e.key LIMIT 1), false)'
const ACT = `
  WITH ended AS (
    DELETE FROM $.gc_window w USING unnest($1::bytea[], $2::text[]) AS i (key, mark)
    WHERE w.key = i.key AND w.mark = i.mark
  ), unpinned AS (
    DELETE FROM $.gc_pins WHERE key = ANY ($3::bytea[])
  ), gone AS (
    DELETE FROM $.entries WHERE key = ANY ($3::bytea[]) RETURNING key, length, locator
  )
  INSERT INTO $.trash (what, key, length, not_before)
  SELECT locator, key, length, clock_timestamp() + $4::float8 * interval '1 millisecond'
  FROM gone WHERE locator IS NOT NULL ORDER BY locator
  ON CONFLICT (what) DO NOTHING`

/** What besides pins calls the key `e.key` live. */
interface Judges {
  readonly hasLiveKeys: boolean
  /** One for each table of the application. */
  readonly conditions: readonly string[]
}

type LookRow = [
  hex: string,
  cancelled: boolean | null,
  length: bigint | null,
  held: number | null,
  locator: Locator | null,
  there: boolean,
  pins: bigint,
  live: boolean
]
/** What somebody has locked besides us cannot be in these. */
interface Locked {
  readonly entries: ReadonlySet<string>
  readonly rows: ReadonlySet<string>
  readonly pins: ReadonlyMap<string, number>
}

export function removeOf(pool: Pool, leases: Leases, tables: Tables): Pick<Catalog, 'remove'> {
  async function once(
    items: readonly Removal[],
    delayMs: number,
    held: HeldLease | undefined,
    call: Call
  ): Promise<readonly RemoveOutcome[]> {
    const work = (at: Connection) =>
      removeAll(at, items, delayMs, async () => {
        const { conditionsFor } = await tables.judge(at, held?.readThrough)
        return { hasLiveKeys: held?.live?.isFilled === true, conditions: conditionsFor('e.key') }
      })
    try {
      return await (held === undefined ? pool.write(call, noPool, work) : held.write(call, noPool, work))
    } catch (error) {
      // A pin that our locks did not keep out protects its own key alone.
      if (sqlStateOf(error) !== '23503') throw error
      if (items.length === 1) return [{ outcome: 'busy' }]
      const outcomes: RemoveOutcome[] = []
      for (const item of items) outcomes.push(...(await once([item], delayMs, held, call)))
      return outcomes
    }
  }
  return {
    async remove(items, trashDelayMs, lease, call) {
      const held = heldFor(leases, items, lease)
      await held?.live?.order(call)
      const outcomes = [...(await once(items, trashDelayMs, held, call))]
      if (held !== undefined) return outcomes
      // A sweep comes again; who deletes directly wants an answer, and what is busy will be free in a moment.
      const until = giveUpAt(call, pool.lockTimeoutMs)
      const kept = giveUpAt(call, KEPT_MS)
      for (let attempts = 1; performance.now() < until; attempts++) {
        const busy = outcomes.flatMap(({ outcome }, i) => (outcome === 'busy' ? [i] : []))
        if (busy.length === 0) break
        const left = busy.map(i => items[i] as Removal)
        // A put that goes on for so long is in a transaction of the application's, whose end nobody waits for.
        const keys = left.map(({ key }) => key)
        if (performance.now() >= kept && (await areKept(pool, keys, call))) break
        await pause(attempts, until)
        const again = await once(left, trashDelayMs, held, call)
        for (const [n, i] of busy.entries()) outcomes[i] = again[n] as RemoveOutcome
      }
      return outcomes
    }
  }
}

/** A lease that is given must be held even for a marked item: it is a sweep's. */
function heldFor(leases: Leases, items: readonly Removal[], lease: Lease | undefined): HeldLease | undefined {
  if (lease === undefined && items.every(({ kind }) => kind === 'marked')) return undefined
  return leases.held(lease)
}

async function removeAll(
  at: Connection,
  items: readonly Removal[],
  trashDelayMs: number,
  judgesNow: () => Promise<Judges>
): Promise<readonly RemoveOutcome[]> {
  await checkStamp(at)
  const parameters = parametersOf(items)
  const locked = await lock(at, parameters)
  const judges = await judgesNow()
  const rows = await judged(judges.conditions, () => at.rows<LookRow>(look(judges), ...parameters))
  const byHex = new Map(rows.map(row => [row[0], row]))
  const outcomes = items.map(item => decide(item, byHex.get(digestHexOf(item.key)) as LookRow, locked))
  const ended = items.filter((_, i) => outcomes[i]?.outcome !== 'busy')
  const taken = items.filter((_, i) => isTaken(outcomes[i] as RemoveOutcome))
  if (ended.length > 0) {
    await at.run(
      ACT,
      ...parametersOf(ended),
      taken.map(({ key }) => digestOf(key)),
      trashDelayMs
    )
  }
  return outcomes
}

async function lock(at: Connection, [keys, marks]: [Param, Param]): Promise<Locked> {
  const entries = await at.rows<[string]>(LOCK_ENTRIES, keys)
  const rows = await at.rows<['pin' | 'row', string, bigint]>(LOCK_ROWS, keys, marks)
  return {
    entries: new Set(entries.map(([hex]) => hex)),
    rows: new Set(rows.filter(([kind]) => kind === 'row').map(([, hex]) => hex)),
    pins: new Map(rows.filter(([kind]) => kind === 'pin').map(([, hex, count]) => [hex, Number(count)]))
  }
}

function decide(item: Removal, row: LookRow, locked: Locked): RemoveOutcome {
  const [hex, cancelled, length, held, locator, there, pins, live] = row
  const isOurs = (!there || locked.entries.has(hex)) && (cancelled === null || locked.rows.has(hex))
  if (!isOurs) return { outcome: 'busy' }
  const entry: Entry | undefined = there ? entryOf(item.key, length as bigint, held, locator) : undefined
  if (item.kind === 'marked' && !liesAt(entry, item.at)) return { outcome: 'absent' }
  // Without its row nothing says that the key was staged or marked, so nothing says that it may go.
  if (cancelled !== false) return { outcome: 'cancelled' }
  if (entry === undefined) return { outcome: 'deleted', entry: undefined }
  if (item.live || live || Number(pins) > (locked.pins.get(hex) ?? 0)) return { outcome: 'cancelled' }
  return { outcome: 'deleted', entry }
}

function liesAt(entry: Entry | undefined, place: Place | undefined): boolean {
  return entry !== undefined && (place === undefined || isSamePlace(entry.place, place))
}

function isTaken(outcome: RemoveOutcome): boolean {
  return outcome.outcome === 'deleted' && outcome.entry !== undefined
}

function parametersOf(items: readonly Removal[]): [Param, Param] {
  return [items.map(({ key }) => digestOf(key)), items.map(item => (item.kind === 'marked' ? item.mark : ''))]
}
