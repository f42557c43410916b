/** The pool's record, and the contract stamp that every writer reads in its transaction. */
import {
  type Algorithm,
  EngineFault,
  type PoolId,
  type PoolMeta,
  type PoolRecord,
  PROTOCOL_VERSION
} from '@alkblobs/core/engine'
import type { Param } from '@alkblobs/postgres-session'
import type { Connection } from '../connection.js'
import { noPool, type Pool } from '../pool.js'

const RECORD = `
  SELECT pool_id, protocol, algorithm, window_delay_ms, bodies_claimed,
         server_system, server_database, server_timeline, forked_from FROM $.meta`
const LOCK = `${RECORD} FOR UPDATE`
const STAMP = 'SELECT protocol, window_delay_ms FROM $.meta'
const REPLACE = `
  UPDATE $.meta SET pool_id = $1, protocol = $2, algorithm = $3, window_delay_ms = $4, bodies_claimed = $5,
                    server_system = $6, server_database = $7, server_timeline = $8, forked_from = $9`

type Row = [
  poolId: PoolId | null,
  protocol: number,
  algorithm: Algorithm,
  windowDelayMs: bigint,
  bodiesClaimed: boolean,
  system: string | null,
  database: string | null,
  timeline: bigint | null,
  forkedFrom: PoolId | null
]

export function metaOf(pool: Pool): PoolMeta {
  return {
    read: call =>
      pool.ask(
        call,
        () => undefined,
        async at => recordOf(await at.row<Row>(RECORD))
      ),
    async compareAndSet(expected, next, call) {
      if (expected === undefined && !(await pool.isThere(call))) await pool.create(call)
      return pool.write(
        call,
        () => false,
        async at => {
          if (!isSame(recordOf(await at.row<Row>(LOCK)), expected)) return false
          return (await at.run(REPLACE, ...parametersOf(next))) === 1
        }
      )
    }
  }
}

/**
 * The window delay in force, in milliseconds, for a transaction that writes.
 * @throws EngineFault `newer` for a protocol that this package does not know: its protections would be ignored.
 */
export async function checkStamp(at: Connection): Promise<number> {
  const [protocol, windowDelayMs] = (await at.row<[number | null, bigint | null]>(STAMP)) ?? [null, null]
  checkProtocol(protocol)
  return Number(windowDelayMs)
}

/** The same for a statement that has read the protocol with something else. */
export function checkProtocol(protocol: number | null): void {
  if (protocol === null) noPool()
  if (Number(protocol) > PROTOCOL_VERSION) {
    throw new EngineFault('newer', `the pool has protocol ${protocol}, this package knows ${PROTOCOL_VERSION}`)
  }
}

function recordOf(row: Row | undefined): PoolRecord | undefined {
  if (row === undefined || row[0] === null) return undefined
  const [poolId, protocol, algorithm, windowDelayMs, bodiesClaimed, system, database, timeline, forkedFrom] = row
  return {
    poolId,
    protocol: Number(protocol),
    algorithm,
    windowDelayMs: Number(windowDelayMs),
    bodiesClaimed,
    ...(system !== null && { server: { system, database: database as string, timeline: Number(timeline) } }),
    ...(forkedFrom !== null && { forkedFrom })
  }
}

function parametersOf(record: PoolRecord): Param[] {
  const { poolId, protocol, algorithm, windowDelayMs, bodiesClaimed, server, forkedFrom } = record
  const { system = null, database = null, timeline = null } = server ?? {}
  return [poolId, protocol, algorithm, windowDelayMs, bodiesClaimed, system, database, timeline, forkedFrom ?? null]
}

function isSame(one: PoolRecord | undefined, other: PoolRecord | undefined): boolean {
  return (
    one?.poolId === other?.poolId &&
    one?.protocol === other?.protocol &&
    one?.algorithm === other?.algorithm &&
    one?.windowDelayMs === other?.windowDelayMs &&
    one?.bodiesClaimed === other?.bodiesClaimed &&
    one?.server?.system === other?.server?.system &&
    one?.server?.database === other?.server?.database &&
    one?.server?.timeline === other?.server?.timeline &&
    one?.forkedFrom === other?.forkedFrom
  )
}
