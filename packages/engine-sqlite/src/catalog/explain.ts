/** Everything the catalog knows about one key. */
import { type BlobKey, type Catalog, digestOf, type Explanation, type Owner } from '@alkblobs/core/engine'
import type { Connection } from '../connection.js'
import type { Pool } from '../pool.js'
import { findRow } from './entries.js'
import { windowDelayIn } from './meta.js'

const PINS = 'SELECT owner, expires_at - ? FROM gc_pins WHERE key = ? AND expires_at > ? ORDER BY owner'
const ROW = "SELECT staged_at, delay_ms, cancelled FROM gc_window WHERE key = ? AND mark = ''"

export function explainOf(pool: Pool): Pick<Catalog, 'explain'> {
  const nothing: Explanation = { entry: undefined, pins: [], window: undefined }
  return { explain: (key, call) => pool.read(call, nothing, at => explain(at, key)) }
}

function explain(at: Connection, key: BlobKey): Explanation {
  const [digest, now] = [digestOf(key), Date.now()]
  const pins = at.rows<[Owner, number]>(PINS, now, digest, now)
  return {
    entry: findRow(at, key, digest)?.entry,
    pins: pins.map(([owner, expiresInMs]) => ({ owner, expiresInMs })),
    window: windowRow(at, digest, now)
  }
}

function windowRow(at: Connection, digest: Uint8Array, now: number): Explanation['window'] {
  const row = at.row<[number, number, number]>(ROW, digest)
  if (row === undefined) return undefined
  const [stagedAt, delayMs, cancelled] = row
  const dueAt = cancelled === 1 ? now : stagedAt + Math.max(delayMs, windowDelayIn(at))
  return { stagedAgoMs: now - stagedAt, dueInMs: Math.max(0, dueAt - now), cancelled: cancelled === 1 }
}
