/** Opening: engines, the pool behind them, and every doubt that must be settled before the first call. */
import { CheckedBodies } from './checked-bodies.js'
import { CheckedCatalog } from './checked-catalog.js'
import { configOf, type StoreConfig, type StoreOptions } from './config.js'
import { dispatchOf } from './dispatch.js'
import type { Durability, Engine, EngineDefinition } from './engine.js'
import { ADVICE, EngineCalls } from './engine-calls.js'
import { EngineFault } from './engine-fault.js'
import { BlobError, EngineError, FleetConfigError, InvalidArgumentError, PoolRefusedError } from './errors.js'
import { assertFleet } from './fleet.js'
import { pairedEngine } from './pair/index.js'
import { Pool, type PoolMedia } from './pool.js'
import { Store } from './store.js'

const WEAKEST_FIRST: readonly Durability[] = ['process', 'os', 'disk']

/**
 * Opens a pool. Nothing is made on an embedded medium before the first write.
 * @throws InvalidArgumentError for options that make no sense, PoolRefusedError for a pool that must not be used (of a later
 * version, another derivation, other media, other settings, or no pool at all), FleetConfigError for a fleet that it may not join,
 * EngineError where the medium fails.
 */
export async function openStore(options: StoreOptions): Promise<Store> {
  const config = configOf(options)
  const opened: EngineCalls[] = []
  try {
    // The large tier first: whether it keeps a catalog tells memory beside it which form to run.
    const large = config.large && (await openEngine('large', config.large, config, opened))
    const form = large?.engine.catalog?.form === 'durable' ? 'durable' : undefined
    const kv = await openEngine('kv', config.kv, config, opened, form)
    const media = mediaOf(kv, large, host => callsOf(host, config, opened))
    if (config.fleet !== undefined) await assertFleet(config.fleet, media.catalog, media.bodies)
    const pool = new Pool(media, config)
    await pool.inspect()
    return new Store({ config, pool, dispatch: dispatchOf(config, kv.engine), calls: opened })
  } catch (error) {
    // The failure to open is the one to report; what was opened is closed as well as it can be.
    await Promise.allSettled(opened.map(calls => calls.close()))
    throw error
  }
}

interface Opened {
  readonly engine: Engine
  readonly calls: EngineCalls
}

async function openEngine(
  tier: 'kv' | 'large',
  definition: EngineDefinition,
  config: StoreConfig,
  opened: EngineCalls[],
  form?: 'durable'
): Promise<Opened> {
  const { algorithm, lockTimeoutMs, connectTimeoutMs, operationTimeoutMs } = config
  const context = { algorithm, lockTimeoutMs, connectTimeoutMs, ...(form && { form }) }
  const opening = Promise.resolve().then(() => definition.open(context))
  const engine = await within(opening, operationTimeoutMs).catch(error => {
    throw openingError(definition.name, error, config.fleet !== undefined)
  })
  if (!isEngine(engine)) throw new InvalidArgumentError(tier, 'an engine, such as sqlite({ file }) or local({ root })')
  return { engine, calls: callsOf(engine, config, opened) }
}

function callsOf(engine: Engine, { operationTimeoutMs }: StoreConfig, opened: EngineCalls[]): EngineCalls {
  const calls = new EngineCalls(engine, operationTimeoutMs)
  opened.push(calls)
  return calls
}

/** An engine that opens after its deadline is closed again: nobody waits for it any more. */
async function within(opening: Promise<Engine>, timeoutMs: number): Promise<Engine> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => {
      opening.then(engine => engine.close()).catch(reportedAsLate)
      reject(new EngineFault('transient', `the medium did not open within ${timeoutMs} ms`))
    }, timeoutMs)
  })
  return Promise.race([opening, late]).finally(() => clearTimeout(timer))
}

function reportedAsLate(): void {}

function isEngine(engine: unknown): engine is Engine {
  if (typeof engine !== 'object' || engine === null) return false
  return (
    'classify' in engine &&
    typeof engine.classify === 'function' &&
    'close' in engine &&
    typeof engine.close === 'function'
  )
}

/** An engine that did not open has no `classify` yet; its own findings carry their code. */
function openingError(name: string, error: unknown, isFleet: boolean): unknown {
  if (error instanceof BlobError) return error
  const kind = error instanceof EngineFault ? error.code : 'unknown'
  const found = error instanceof EngineFault ? `${error.message}; ${ADVICE[kind]}` : ADVICE.unknown
  if (kind === 'pooled' && isFleet) return new FleetConfigError('pooling', `${name}: ${found}`, error)
  if (kind === 'foreign' || kind === 'newer') return new PoolRefusedError(kind, `${name}: ${found}`, error)
  return new EngineError(name, 'open', kind, found, { cause: error })
}

function mediaOf(kv: Opened, large: Opened | undefined, callsOf: (host: Engine) => EngineCalls): PoolMedia {
  const { catalog } = kv.engine
  if (catalog === undefined)
    throw new InvalidArgumentError('kv', `an engine that keeps a catalog; ${kv.engine.name} does not`)
  const bodies = large?.engine.bodies
  if (large !== undefined && bodies === undefined) {
    throw new InvalidArgumentError('large', `an engine that keeps bodies; ${large.engine.name} does not`)
  }
  const durabilities = [kv.engine.durability, large?.engine.durability]
  const isVolatile = kv.engine.durability === 'process'
  const far = isVolatile ? large?.engine.catalog : undefined
  const host = large && far && bodies && pairedEngine(kv.engine, large.engine, { near: catalog, far, bodies })
  if (host !== undefined && catalog.form !== far?.form) {
    throw new InvalidArgumentError('kv', `an engine that can stand beside the catalog of ${large?.engine.name}`)
  }
  return {
    catalog: host
      ? new CheckedCatalog(host, host.catalog, callsOf(host))
      : new CheckedCatalog(kv.engine, catalog, kv.calls),
    bodies: large && bodies && new CheckedBodies(bodies, large.calls),
    volatile: isVolatile && host === undefined,
    durability: WEAKEST_FIRST.find(durability => durabilities.includes(durability)) ?? 'process'
  }
}
