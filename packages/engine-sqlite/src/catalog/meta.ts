/** The pool's record, and the contract stamp that every writer checks. */
import {
  type Algorithm,
  EngineFault,
  type PoolId,
  type PoolMeta,
  type PoolRecord,
  PROTOCOL_VERSION
} from '@alkblobs/core/engine'
import type { Connection } from '../connection.js'
import { noPool } from '../group-commit.js'
import type { Pool } from '../pool.js'
import type { Transaction } from '../transaction.js'

const RECORD = 'SELECT pool_id, protocol, algorithm, window_delay_ms, bodies_claimed, forked_from FROM meta'
const WINDOW_DELAY = 'SELECT window_delay_ms FROM meta'
const REPLACE = `
  UPDATE meta SET pool_id = ?, protocol = ?, algorithm = ?, window_delay_ms = ?, bodies_claimed = ?, forked_from = ?`

export function metaOf(pool: Pool): PoolMeta {
  return {
    read: call => pool.read(call, undefined, recordIn),
    async compareAndSet(expected, next, call) {
      if (expected === undefined) await pool.create(call)
      return pool.write(call, {
        absent: () => false,
        run: transaction => {
          const { at } = transaction
          if (!isSame(recordIn(at), expected)) return false
          transaction.recordChanged()
          const { poolId, protocol, algorithm, windowDelayMs, bodiesClaimed, forkedFrom = null } = next
          return at.run(REPLACE, poolId, protocol, algorithm, windowDelayMs, bodiesClaimed ? 1 : 0, forkedFrom) === 1
        }
      })
    }
  }
}

/**
 * The window delay in force, in milliseconds, for a transaction that writes.
 * @throws EngineFault `newer` for a protocol that this package does not know: its protections would be ignored.
 */
export function checkStamp({ stamp: { protocol, windowDelayMs } }: Transaction): number {
  if (protocol === undefined) return noPool()
  if (protocol > PROTOCOL_VERSION) {
    throw new EngineFault('newer', `the pool has protocol ${protocol}, this package knows ${PROTOCOL_VERSION}`)
  }
  return windowDelayMs
}

export function windowDelayIn(at: Connection): number {
  return at.row<[number | null]>(WINDOW_DELAY)?.[0] ?? 0
}

function recordIn(at: Connection): PoolRecord | undefined {
  const row = at.row<[PoolId | null, number, Algorithm, number, number, PoolId | null]>(RECORD)
  if (row === undefined || row[0] === null) return undefined
  const [poolId, protocol, algorithm, windowDelayMs, bodiesClaimed, forkedFrom] = row
  const record = { poolId, protocol, algorithm, windowDelayMs, bodiesClaimed: bodiesClaimed === 1 }
  return forkedFrom === null ? record : { ...record, forkedFrom }
}

function isSame(one: PoolRecord | undefined, other: PoolRecord | undefined): boolean {
  return (
    one?.poolId === other?.poolId &&
    one?.protocol === other?.protocol &&
    one?.algorithm === other?.algorithm &&
    one?.windowDelayMs === other?.windowDelayMs &&
    one?.bodiesClaimed === other?.bodiesClaimed &&
    one?.forkedFrom === other?.forkedFrom
  )
}
