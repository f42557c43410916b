/**
 * Pins: rows of one holder and one key, with a generation and an expiry. Whoever writes one also tells off a sweep or delete
 * that was about to take the entry.
 */
import {
  type Catalog,
  digestOf,
  type Entry,
  type Lost,
  type PinId,
  type RenewRequest,
  type StageId
} from '@alkblobs/core/engine'
import type { Connection } from '../connection.js'
import type { Pool } from '../pool.js'
import type { Transaction } from '../transaction.js'
import { findRow } from './entries.js'
import { checkStamp } from './meta.js'

const PIN = `
  INSERT INTO gc_pins (key, owner, generation, expires_at) VALUES (?, ?, ?, ?)
  ON CONFLICT (key, owner) DO UPDATE SET
    generation = max(generation, excluded.generation), expires_at = max(expires_at, excluded.expires_at)`
const CANCEL = 'UPDATE gc_window SET cancelled = 1 WHERE key = ?'
const IS_PINNED = 'SELECT 1 FROM gc_pins WHERE key = ? AND expires_at > ? LIMIT 1'
const RENEW = `
  UPDATE gc_pins SET expires_at = max(expires_at, ?)
  WHERE key = ? AND owner = ? AND generation >= ? AND expires_at > ?`
const REVIVE = 'UPDATE gc_pins SET expires_at = ? WHERE key = ? AND owner = ? AND generation >= ?'
const RENEW_STAGE = 'UPDATE stages SET expires_at = max(expires_at, ?) WHERE id = ? AND expires_at > ?'
const RELEASE = 'DELETE FROM gc_pins WHERE key = ? AND owner = ? AND generation <= ?'

/** ENG-PUBLISH-6: the pin, if one is asked for, and the end of every doubt about the key. */
export function protect(
  transaction: Transaction,
  digest: Uint8Array,
  pin?: { row: PinId['pin']; ttlMs: number }
): void {
  const { at, now } = transaction
  if (pin !== undefined) at.run(PIN, digest, pin.row.owner, pin.row.generation, now + pin.ttlMs)
  if (transaction.hasCandidates) at.run(CANCEL, digest)
}

export function isPinned(at: Connection, digest: Uint8Array, now: number): boolean {
  return at.row(IS_PINNED, digest, now) !== undefined
}

export function pinsOf(pool: Pool): Pick<Catalog, 'pin' | 'renew' | 'release'> {
  return {
    pin: (items, call) =>
      pool.writeEach(call, items, some => ({
        absent: () => some.map(() => undefined),
        run: transaction => {
          checkStamp(transaction)
          return some.map(item => pinOne(transaction, item))
        }
      })),
    async renew(request, call) {
      const pins = await pool.writeEach(call, request.pins, some => ({
        absent: () => some,
        run: transaction => some.filter(pin => !renewPin(transaction, pin, request))
      }))
      const stages = await pool.writeEach(call, request.stages, some => ({
        absent: () => some,
        run: transaction => some.filter(stage => !renewStage(transaction, stage, request.stageTtlMs))
      }))
      return { pins, stages } satisfies Lost
    },
    async release(pins, call) {
      await pool.writeEach(call, pins, some => ({
        absent: () => [],
        run: ({ at }) => {
          for (const { key, pin } of some) at.run(RELEASE, digestOf(key), pin.owner, pin.generation)
          return []
        }
      }))
    }
  }
}

function pinOne(
  transaction: Transaction,
  { key, pin, ttlMs }: Parameters<Catalog['pin']>[0][number]
): Entry | undefined {
  const digest = digestOf(key)
  const found = findRow(transaction.at, key, digest)
  if (found !== undefined) protect(transaction, digest, { row: pin, ttlMs })
  return found?.entry
}

function renewPin({ at, now }: Transaction, { key, pin }: PinId, { pinTtlMs, revive }: RenewRequest): boolean {
  const digest = digestOf(key)
  const expiresAt = now + pinTtlMs
  if (at.run(RENEW, expiresAt, digest, pin.owner, pin.generation, now) > 0) return true
  if (!revive || at.run(REVIVE, expiresAt, digest, pin.owner, pin.generation) === 0) return false
  // While the row was expired the key may have been staged or marked as unprotected (ENG-RENEW-3).
  at.run(CANCEL, digest)
  return true
}

function renewStage({ at, now }: Transaction, stage: StageId, ttlMs: number): boolean {
  return at.run(RENEW_STAGE, now + ttlMs, stage, now) > 0
}
