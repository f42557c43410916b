/** Engines over schemas of their own, closed and removed after the test. */
import { type Call, type Catalog, type Engine, formatKey, type OpenContext } from '@alkblobs/core/engine'
import { freshSchema, noServer, type TestSchema } from '@alkblobs/testkit'
import { describe, onTestFinished } from 'vitest'
import { type PostgresConfig, postgres } from '../src/index.js'

const reason = noServer()
/** Tests of a real server: skipped with the reason where none can be had. */
export function describeServer(name: string, tests: () => void, { timeoutMs = 30_000 } = {}): void {
  const title = reason === undefined ? name : `${name} (${reason})`
  describe.skipIf(reason !== undefined)(title, { timeout: timeoutMs }, tests)
}

export const context: OpenContext = { algorithm: 'blake3', lockTimeoutMs: 2_000, connectTimeoutMs: 10_000 }
export const call = (ms = 10_000): Call => ({ deadlineMs: performance.now() + ms })
export const record = {
  poolId: 'pool-1' as never,
  protocol: 1,
  algorithm: 'blake3',
  windowDelayMs: 0,
  bodiesClaimed: false
} as const

export type Opened = Engine & { readonly catalog: Catalog }

/** A server that is slow because the machine is busy is given so long before the test says that it never came. */
const PATIENCE_MS = 20_000

/** Waits until it is so. */
export async function eventually(what: string, isSo: () => boolean | Promise<boolean>): Promise<void> {
  for (const end = performance.now() + PATIENCE_MS; !(await isSo()); ) {
    if (performance.now() > end) throw new Error(`it never came to this: ${what}`)
    await new Promise(resolve => setTimeout(resolve, 20))
  }
}

/** A schema that does not exist yet. */
export async function place(): Promise<TestSchema> {
  const made = await freshSchema()
  onTestFinished(() => made.drop())
  return made
}

export async function open(config: PostgresConfig): Promise<Opened> {
  const engine = (await postgres(config).open(context)) as Opened
  onTestFinished(() => engine.close())
  return engine
}

/** A pool that is there. */
export async function openPool(at: TestSchema): Promise<Opened> {
  const engine = await open({ url: at.url, schema: at.schema })
  await engine.catalog.meta.compareAndSet(undefined, record, call())
  return engine
}

export function keyOf(n: number) {
  const digest = Buffer.alloc(32)
  digest.writeUInt32BE(n)
  return formatKey('blake3', digest)
}

export const inline = (n: number, body: Uint8Array) =>
  ({ key: keyOf(n), length: body.byteLength, bytes: { kind: 'inline', body }, trashDelayMs: 0 }) as const
