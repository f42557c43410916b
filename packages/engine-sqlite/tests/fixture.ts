/** A pool in a folder of its own for each test, and short names for what tests say often. */
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import {
  type BlobKey,
  type Call,
  type Catalog,
  type Engine,
  formatKey,
  type Locator,
  type Owner,
  type PinRow,
  type PoolId,
  type PoolRecord,
  PROTOCOL_VERSION,
  type Publication,
  type StageId
} from '@alkblobs/core/engine'
import Database from 'better-sqlite3'
import { onTestFinished } from 'vitest'
import { sqlite } from '../src/index.js'

export const HOUR = 3_600_000
export const OWNER = 'owner-a' as Owner
export const OTHER = 'owner-b' as Owner

export const record: PoolRecord = {
  poolId: 'pool-1' as PoolId,
  protocol: PROTOCOL_VERSION,
  algorithm: 'blake3',
  windowDelayMs: 0,
  bodiesClaimed: false
}

export const call = (ms = 5_000, signal?: AbortSignal): Call => ({
  deadlineMs: performance.now() + ms,
  ...(signal && { signal })
})

export function folder(): string {
  const made = mkdtempSync(join(tmpdir(), 'alkblobs-sqlite-'))
  onTestFinished(() => rmSync(made, { recursive: true, force: true }))
  return made
}

export type Opened = Engine & { readonly catalog: Catalog }

/** An engine over a file that may hold anything; closed after the test. */
export async function openFile(
  file: string,
  settings: { durability?: 'disk' | 'os'; lockTimeoutMs?: number } = {}
): Promise<Opened> {
  const { lockTimeoutMs = 2_000, ...rest } = settings
  const engine = await sqlite({ file, ...rest }).open({ algorithm: 'blake3', lockTimeoutMs, connectTimeoutMs: 1_000 })
  onTestFinished(() => engine.close())
  return engine as Opened
}

/** A pool that is there. */
export async function openPool(
  settings: { file?: string; durability?: 'disk' | 'os'; lockTimeoutMs?: number; windowDelayMs?: number } = {}
) {
  const { file = join(folder(), 'pool.db'), windowDelayMs = 0, ...rest } = settings
  const engine = await openFile(file, rest)
  await engine.catalog.meta.compareAndSet(undefined, { ...record, windowDelayMs }, call())
  return {
    file,
    engine,
    catalog: engine.catalog,
    sql: (text: string, ...values: unknown[]) => sql(file, text, ...values)
  }
}

/** Looks into the file, or damages it, behind the engine's back. */
export function sql(file: string, text: string, ...values: unknown[]): unknown[] {
  const db = new Database(file)
  try {
    const statement = db.prepare(text)
    if (statement.reader) return statement.all(...values)
    statement.run(...values)
    return []
  } finally {
    db.close()
  }
}

export function keyOf(n: number): BlobKey {
  const digest = Buffer.alloc(32)
  digest.writeUInt32BE(n)
  return formatKey('blake3', digest)
}

export const stageOf = (n: number) => n.toString(16).padStart(32, '0') as StageId
export const locatorOf = (n: number) => `${stageOf(n)}.sealed` as Locator
export const pinOf = (generation = 1, owner = OWNER): PinRow => ({ owner, generation })

export function inline(n: number, body: Uint8Array = randomBytes(100), more: Partial<Publication> = {}): Publication {
  return { key: keyOf(n), length: body.byteLength, bytes: { kind: 'inline', body }, trashDelayMs: 0, ...more }
}

export function staged(n: number, stage = n, more: Partial<Publication> = {}): Publication {
  const bytes = { kind: 'staged', stage: stageOf(stage), locator: locatorOf(stage) } as const
  return { key: keyOf(n), length: 1_000_000, bytes, trashDelayMs: 0, ...more }
}

export const byKey = (n: number, more: Partial<Publication> = {}): Publication => ({
  key: keyOf(n),
  length: 100,
  bytes: { kind: 'none' },
  trashDelayMs: 0,
  ...more
})

export const pinned = (ttlMs = HOUR, row = pinOf()) => ({ pin: { row, ttlMs } })

export const sleep = (ms: number) => new Promise(resolve => setTimeout(resolve, ms))
