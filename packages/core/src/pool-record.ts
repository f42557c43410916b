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

/**
 * The record of a fork, but for its id. One that stopped half-way may or may not have taken the bodies over; whoever has them now is
 * taken over from.
 */
export function forkOf({ forkedFrom, ...now }: PoolRecord, claimed: PoolId | undefined): PoolRecord {
  const isBound = now.bodiesClaimed || forkedFrom !== undefined || claimed === now.poolId
  const from = claimed === now.poolId ? claimed : (forkedFrom ?? now.poolId)
  return { ...now, bodiesClaimed: false, ...(isBound && { forkedFrom: from }) }
}
