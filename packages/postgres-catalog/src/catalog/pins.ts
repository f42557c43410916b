/**
 * Pins: rows of one holder and one key, with a generation and an expiry. Whoever writes one also tells off a sweep or delete
 * that was about to take the entry, and has locked the entry before.
 */
import {
  type Call,
  type Catalog,
  digestHexOf,
  digestOf,
  type Lost,
  type PinId,
  type Publication,
  type RenewRequest
} from '@alkblobs/core/engine'
import { byteaArray, float8Array, int8Array, type Param, type Statement, textArray } from '@alkblobs/postgres-session'
import type { Connection } from '../connection.js'
import type { Pool } from '../pool.js'

const cancelling = (wait: '' | 'SKIP LOCKED') => `
  WITH told AS MATERIALIZED (
    SELECT key, mark FROM $.gc_window
    WHERE key = ANY ($1::bytea[]) AND NOT cancelled ORDER BY key, mark FOR UPDATE ${wait}
  )
  UPDATE $.gc_window w SET cancelled = true FROM told t WHERE w.key = t.key AND w.mark = t.mark`
const CANCEL = cancelling('')
const CANCEL_WHAT_IS_FREE = cancelling('SKIP LOCKED')
const NOT_CANCELLED = "SELECT encode(key, 'hex') FROM $.gc_window WHERE key = ANY ($1::bytea[]) AND NOT cancelled"
/** Items of one key and owner are one row: a statement must not touch a row twice. */
const PIN = `
  INSERT INTO $.gc_pins AS p (key, owner, generation, expires_at)
  SELECT key, owner, max(generation), clock_timestamp() + max(ttl) * interval '1 millisecond'
  FROM unnest($1::bytea[], $2::text[], $3::bigint[], $4::float8[])
    AS i (key, owner, generation, ttl)
  GROUP BY key, owner ORDER BY key, owner
  ON CONFLICT (key, owner) DO UPDATE SET
    generation = greatest(p.generation, excluded.generation), expires_at = greatest(p.expires_at, excluded.expires_at)`
/**
 * One statement for all pins and stages of a holder. A row that somebody has locked is left for the next time, for they are
 * renewing it, ending it, or about to leave it alone; it is not lost. It waits for nobody, so one reading of the clock says what
 * has expired. Answers what is lost: pins by their place in the request,
 * 'expired' where the row is still there.
 */
const RENEW = `
  WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::bytea[], $2::text[], $3::bigint[])
      WITH ORDINALITY AS i (key, owner, generation, n)
  ), held AS MATERIALIZED (
    SELECT p.key, p.owner FROM $.gc_pins p JOIN asked a ON p.key = a.key AND p.owner = a.owner
    WHERE p.generation >= a.generation AND p.expires_at > statement_timestamp()
    ORDER BY p.key, p.owner FOR UPDATE OF p SKIP LOCKED
  ), renewed AS (
    UPDATE $.gc_pins p SET expires_at = greatest(p.expires_at, clock_timestamp() + $4::float8 * interval '1 millisecond')
    FROM held h WHERE p.key = h.key AND p.owner = h.owner
  ), stage AS MATERIALIZED (
    SELECT * FROM unnest($5::text[]) WITH ORDINALITY AS i (id, n)
  ), held_stage AS MATERIALIZED (
    SELECT s.id FROM $.stages s WHERE s.id = ANY ($5::text[]) AND s.expires_at > statement_timestamp()
    ORDER BY s.id FOR UPDATE SKIP LOCKED
  ), renewed_stage AS (
    UPDATE $.stages s SET expires_at = greatest(s.expires_at, clock_timestamp() + $6::float8 * interval '1 millisecond')
    FROM held_stage h WHERE s.id = h.id
  )
  SELECT CASE WHEN p.key IS NULL THEN 'pin' ELSE 'expired' END, a.n
  FROM asked a LEFT JOIN $.gc_pins p ON p.key = a.key AND p.owner = a.owner AND p.generation >= a.generation
  WHERE p.key IS NULL OR p.expires_at <= statement_timestamp()
  UNION ALL
  SELECT 'stage', s.n FROM stage s
  WHERE (SELECT true FROM $.stages t WHERE t.id = s.id AND t.expires_at > statement_timestamp()) IS NULL`
const HOLD = 'SELECT key FROM $.entries WHERE key = ANY ($1::bytea[]) ORDER BY key FOR KEY SHARE'
const REVIVE = `
  WITH asked AS MATERIALIZED (
    SELECT * FROM unnest($1::bytea[], $2::text[], $3::bigint[])
      WITH ORDINALITY AS i (key, owner, generation, n)
  ), held AS MATERIALIZED (
    SELECT p.key, p.owner, a.n FROM $.gc_pins p JOIN asked a ON p.key = a.key AND p.owner = a.owner
    WHERE p.generation >= a.generation ORDER BY p.key, p.owner FOR UPDATE OF p
  )
  UPDATE $.gc_pins p SET expires_at = greatest(p.expires_at, clock_timestamp() + $4::float8 * interval '1 millisecond')
  FROM held h WHERE p.key = h.key AND p.owner = h.owner RETURNING h.n`
const RELEASE = `
  WITH held AS MATERIALIZED (
    SELECT p.key, p.owner
    FROM $.gc_pins p JOIN unnest($1::bytea[], $2::text[], $3::bigint[]) AS i (key, owner, generation)
      ON p.key = i.key AND p.owner = i.owner
    WHERE p.generation <= i.generation ORDER BY p.key, p.owner FOR UPDATE OF p
  )
  DELETE FROM $.gc_pins p USING held h WHERE p.key = h.key AND p.owner = h.owner`

/** ENG-PUBLISH-6: the end of every doubt about the keys, then the pins that are asked for. The entries are locked or made. */
export async function protect(at: Connection, items: readonly Publication[]): Promise<void> {
  const pinned = items.flatMap(({ key, pin }) => (pin === undefined ? [] : [{ key, ...pin }]))
  const cancelled = cancel(at, items)
  if (pinned.length === 0) return cancelled
  const ids = parametersOf(pinned.map(({ key, row }) => ({ key, pin: row })))
  const ttls = pinned.map(({ ttlMs }) => ttlMs)
  // Sent together, and run by the server one after the other.
  await Promise.all([cancelled, at.run(PIN, ...ids, ttls)])
}

/** The same, as statements. */
export function protecting(items: readonly Publication[]): Statement[] {
  const pinned = items.flatMap(({ key, pin }) => (pin === undefined ? [] : [{ key, ...pin }]))
  const cancelling = { text: CANCEL, params: [byteaArray(items.map(({ key }) => digestOf(key)))] }
  if (pinned.length === 0) return [cancelling]
  const params = [
    byteaArray(pinned.map(({ key }) => digestOf(key))),
    textArray(pinned.map(({ row }) => row.owner)),
    int8Array(pinned.map(({ row }) => row.generation)),
    float8Array(pinned.map(({ ttlMs }) => ttlMs))
  ]
  return [cancelling, { text: PIN, params }]
}

export function pinsOf(pool: Pool): Pick<Catalog, 'renew' | 'release'> {
  return {
    async renew(request, call) {
      const { lost, expired } = await renew(pool, request, call)
      if (!request.revive || expired.length === 0) return { ...lost, pins: [...lost.pins, ...expired] }
      const dead = await revive(pool, expired, request.pinTtlMs, call)
      return { ...lost, pins: [...lost.pins, ...dead] }
    },
    async release(pins, call) {
      await pool.ask(
        call,
        () => 0,
        at => at.run(RELEASE, ...parametersOf(pins))
      )
    }
  }
}

async function renew(
  pool: Pool,
  { pins, pinTtlMs, stages, stageTtlMs }: RenewRequest,
  call: Call
): Promise<{ lost: Lost; expired: readonly PinId[] }> {
  const rows = await pool.ask<['pin' | 'expired' | 'stage', bigint][] | undefined>(
    call,
    () => undefined,
    at => at.rows(RENEW, ...parametersOf(pins), pinTtlMs, stages, stageTtlMs)
  )
  if (rows === undefined) return { lost: { pins, stages }, expired: [] }
  const placesOf = (kind: string) => rows.filter(row => row[0] === kind).map(([, n]) => Number(n) - 1)
  return {
    lost: {
      pins: placesOf('pin').map(i => pins[i] as PinId),
      stages: placesOf('stage').map(i => stages[i] as (typeof stages)[number])
    },
    expired: placesOf('expired').map(i => pins[i] as PinId)
  }
}

/**
 * Lets expired rows live on and answers those that are gone. While a row was expired its key may have been staged or marked
 * as unprotected, so the entry is locked first and the window is told (ENG-RENEW-3): not one statement, but rare.
 */
async function revive(pool: Pool, pins: readonly PinId[], ttlMs: number, call: Call): Promise<readonly PinId[]> {
  return pool.write(
    call,
    () => pins,
    async at => {
      const digests = pins.map(({ key }) => digestOf(key))
      await at.rows(HOLD, digests)
      await at.run(CANCEL_WHAT_IS_FREE, digests)
      // Somebody is cancelling these and may take it back, in a transaction that lasts: they are neither revived nor lost yet.
      const left = new Set((await at.rows<[string]>(NOT_CANCELLED, digests)).map(([hex]) => hex))
      const asked = pins.filter(({ key }) => !left.has(digestHexOf(key)))
      const rows = await at.rows<[bigint]>(REVIVE, ...parametersOf(asked), ttlMs)
      const alive = new Set(rows.map(([n]) => Number(n) - 1))
      return asked.filter((_, i) => !alive.has(i))
    }
  )
}

async function cancel(at: Connection, items: readonly Pick<PinId, 'key'>[]): Promise<void> {
  await at.run(
    CANCEL,
    items.map(({ key }) => digestOf(key))
  )
}

function parametersOf(pins: readonly PinId[]): [Param, Param, Param] {
  return [pins.map(({ key }) => digestOf(key)), pins.map(({ pin }) => pin.owner), pins.map(({ pin }) => pin.generation)]
}
