/** Everything the catalog knows about one key. */
import { type Catalog, digestOf, type Entry, type Explanation, type Locator, type Owner } from '@alkblobs/core/engine'
import type { Connection } from '../connection.js'
import type { Pool } from '../pool.js'
import { entryOf } from './entries.js'

const ENTRY = 'SELECT length, octet_length(body), locator FROM $.entries WHERE key = $1::bytea'
const PINS = `
  SELECT owner, ceil(extract(epoch FROM expires_at - clock_timestamp()) * 1000)
  FROM $.gc_pins WHERE key = $1::bytea AND expires_at > clock_timestamp() ORDER BY owner`
const ROW = `
  SELECT floor(extract(epoch FROM clock_timestamp() - staged_at) * 1000), cancelled,
         greatest(delay_ms, (SELECT window_delay_ms FROM $.meta))
  FROM $.gc_window WHERE key = $1::bytea AND mark = ''`

export function explainOf(pool: Pool): Pick<Catalog, 'explain'> {
  return {
    explain: (key, call) =>
      pool.ask<Explanation>(
        call,
        () => ({ entry: undefined, pins: [], window: undefined }),
        async at => {
          const digest = digestOf(key)
          const row = await at.row<[bigint, number | null, Locator | null]>(ENTRY, digest)
          const entry: Entry | undefined = row && entryOf(key, ...row)
          const pins = await at.rows<[Owner, string]>(PINS, digest)
          return {
            entry,
            pins: pins.map(([owner, expiresInMs]) => ({ owner, expiresInMs: Number(expiresInMs) })),
            window: await windowRow(at, digest)
          }
        }
      )
  }
}

async function windowRow(at: Connection, digest: Buffer): Promise<Explanation['window']> {
  const row = await at.row<[string, boolean, bigint]>(ROW, digest)
  if (row === undefined) return undefined
  const [stagedAgoMs, cancelled, delayMs] = row
  const dueInMs = cancelled ? 0 : Math.max(0, Number(delayMs) - Number(stagedAgoMs))
  return { stagedAgoMs: Number(stagedAgoMs), dueInMs, cancelled }
}
