/** What a pool's record says to a store: whether it may be used here, and whether two of them are the same. */
import { randomBytes } from 'node:crypto'
import type { StoreConfig } from './config.js'
import type { PoolId, PoolRecord } from './engine.js'
import { PoolRefusedError } from './errors.js'
import { isSameServer } from './home.js'
import { PROTOCOL_VERSION } from './limits.js'

export function newPoolId(): PoolId {
  return randomBytes(16).toString('hex') as PoolId
}

/** `known` is the record that this store saw before. @throws PoolRefusedError for a pool that is not ours to use. */
export function assertUsable(record: PoolRecord, known: PoolRecord | undefined, config: StoreConfig): void {
  if (record.algorithm !== config.algorithm) {
    throw new PoolRefusedError(
      'derivation',
      `the pool derives its keys with ${record.algorithm}; open it with { derivation: '${record.algorithm}' }`
    )
  }
  if (known !== undefined && known.poolId !== record.poolId) {
    throw new PoolRefusedError('media', 'the medium now holds another pool than the one this store opened')
  }
  const asked = config.windowDelayMs
  if (known === undefined && asked !== undefined && asked !== record.windowDelayMs) {
    throw new PoolRefusedError(
      'settings',
      `the pool's window delay is ${record.windowDelayMs} ms, not ${asked} ms; leave the option out, or change it with store.configure({ windowDelayMs: ${asked} })`
    )
  }
}

/** @throws PoolRefusedError (`newer`) for a pool whose protections this version does not know. */
export function assertWritable(record: PoolRecord): void {
  if (record.protocol > PROTOCOL_VERSION) {
    throw new PoolRefusedError(
      'newer',
      'the pool was made by a later version of this library; it may be read, upgrade to write to it'
    )
  }
}

export function isSameRecord(one: PoolRecord, other: PoolRecord): boolean {
  return (
    one.poolId === other.poolId &&
    one.windowDelayMs === other.windowDelayMs &&
    one.bodiesClaimed === other.bodiesClaimed &&
    one.forkedFrom === other.forkedFrom &&
    isSameServer(one.server, other.server)
  )
}

/** Whether the record speaks of bodies that are the pool's already, or will be when its fork is completed. */
export function isBound({ bodiesClaimed, forkedFrom }: PoolRecord): boolean {
  return bodiesClaimed || forkedFrom !== undefined
}

/**
 * The record of a fork, but for its id. `claimed`: whose the bodies are that the store was opened with; `areCopied`: they are a copy. A
 * fork that stopped half-way may or may not have taken them over; whoever has them now is taken over from.
 * @throws PoolRefusedError (`media`) if the pool has bodies that nobody called a copy, or that are not these.
 */
export function forkOf(record: PoolRecord, claimed: PoolId | undefined, areCopied: boolean): PoolRecord {
  const { forkedFrom, ...now } = record
  if (!isBound(record) && claimed !== record.poolId) return record
  if (!areCopied) {
    throw new PoolRefusedError(
      'media',
      `the pool has large bodies, and the original still uses its own: ${FORK_ADVICE}`
    )
  }
  const from = claimed === now.poolId ? claimed : (forkedFrom ?? now.poolId)
  if (claimed !== from) {
    throw new PoolRefusedError('media', `the large tier here is no copy of the one that the pool has: ${FORK_ADVICE}`)
  }
  return { ...now, bodiesClaimed: false, forkedFrom: from }
}

/** Which bodies a half-made fork would write to and remove from, its own copy or the original's, only its operator knows. */
export function halfForked(): PoolRefusedError {
  return new PoolRefusedError(
    'media',
    `a fork of this pool stopped half-way; it may be read, and to write to it ${FORK_ADVICE}`
  )
}

const FORK_ADVICE = "open the store with a copy of the large tier and call fork({ bodies: 'copied' })"

/** The first field of a record that holds what no version of this library has written. */
export function damagedField(record: PoolRecord): keyof PoolRecord | undefined {
  const { poolId, protocol, algorithm, windowDelayMs, bodiesClaimed } = record
  if (typeof poolId !== 'string' || poolId === '') return 'poolId'
  if (!Number.isSafeInteger(protocol) || protocol < 1) return 'protocol'
  if (typeof algorithm !== 'string' || algorithm.length === 0) return 'algorithm'
  if (!Number.isSafeInteger(windowDelayMs) || windowDelayMs < 0) return 'windowDelayMs'
  return typeof bodiesClaimed === 'boolean' ? undefined : 'bodiesClaimed'
}
