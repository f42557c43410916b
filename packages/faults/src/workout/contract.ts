/** Steps for methods of the contract that a store calls only in special company (a fleet, a pair of catalogs): here they are called directly. */
import { randomBytes } from 'node:crypto'
import {
  type BlobKey,
  type Call,
  digestOf,
  type Engine,
  type EngineDefinition,
  type ErrorCode,
  formatKey,
  type Lease,
  type SqlSource
} from '@alkblobs/core/engine'
import { ApplicationFailure, together } from '../postgres/application.js'
import type { Step } from './steps.js'
import type { World } from './world.js'

const CONTEXT = { algorithm: 'sha256', lockTimeoutMs: 1_000, connectTimeoutMs: 2_000 } as const
const CALL_LIMIT_MS = 4_000

/** What an engine threw, by the name that it gave it. Core wraps errors in the same way. */
class NamedFailure extends Error {
  readonly code = 'ERR_BLOB_ENGINE'

  constructor(kind: ErrorCode) {
    super(`the engine failed: ${kind}`)
    this.name = 'NamedFailure'
  }
}

type Work = (engine: Engine, call: Call) => Promise<unknown>

function step(definition: EngineDefinition, name: string, work: Work): Step {
  return {
    operation: 'contract',
    name: `${name} of ${definition.name}`,
    async run({ wrap }: World) {
      const engine = await named(undefined, () => wrap(definition).open(CONTEXT))
      try {
        await named(engine, () => work(engine, { deadlineMs: performance.now() + CALL_LIMIT_MS }))
      } finally {
        await named(engine, () => engine.close())
      }
    }
  }
}

async function named<T>(engine: Engine | undefined, work: () => Promise<T>): Promise<T> {
  try {
    return await work()
  } catch (error) {
    if (error instanceof ApplicationFailure) throw error
    const kind = engine?.classify(error) ?? (error as { code?: ErrorCode }).code ?? 'unknown'
    // An error without a name is a finding of its own.
    if (kind === 'unknown') throw error
    throw new NamedFailure(kind)
  }
}

export interface Company {
  /** An empty table in the engine's database, where it judges tables. */
  readonly table?: SqlSource
  /** The address of the engine's database, where it takes part in transactions. */
  readonly url?: string
}

export function contractSteps(definition: EngineDefinition, { table, url }: Company = {}): readonly Step[] {
  const key: BlobKey = formatKey('sha256', randomBytes(32))
  return [
    step(definition, 'the server', async ({ catalog, bodies }, call) => {
      await catalog?.server?.identity(call)
      await catalog?.server?.unfit(call)
      await bodies?.server?.identity(call)
    }),
    step(definition, 'the lease', async ({ catalog }, call) => {
      const lease: Lease | undefined = await catalog?.lease(call)
      try {
        await lease?.live?.add(digestOf(key), call)
      } finally {
        await lease?.release()
      }
    }),
    step(definition, 'tables', async ({ catalog }, call) => {
      if (table === undefined) return
      await catalog?.sqlLiveness?.register(table, call)
      await catalog?.sqlLiveness?.among([key], undefined, call)
    }),
    step(definition, 'a transaction', async ({ catalog }, call) => {
      if (url === undefined || catalog?.joining === undefined) return
      const { joining, meta } = catalog
      // Beside another kv tier a catalog may hold no pool, and has nothing to be put into.
      if ((await meta.read(call)) === undefined) return
      await together(url, async transaction => {
        const joined = await joining.join(transaction, call)
        await joined.publish({ key, length: 1, bytes: { kind: 'none' }, trashDelayMs: 0 }, call)
      })
    })
  ]
}
