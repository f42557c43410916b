/**
 * Where a fault can strike: every asynchronous method of the contract, under the path that leads to it. The lists are checked
 * against the contract's types, so a method that is added there and not here does not compile.
 */
import type {
  BodyStore,
  BodyWriter,
  Catalog,
  Engine,
  EngineDefinition,
  JoinedTransaction,
  Joining,
  Lease,
  PoolMeta,
  ServerCatalog,
  ServerMedium,
  SqlLiveness
} from '@alkblobs/core/engine'

type IsAsync<F> =
  NonNullable<F> extends (...args: never[]) => infer R
    ? [R] extends [Promise<unknown> | AsyncIterable<unknown>]
      ? true
      : false
    : false
/** The names of the methods that answer later. */
type AsyncMethod<T> = { [K in keyof T & string]-?: true extends IsAsync<T[K]> ? K : never }[keyof T & string]
type All<T> = Record<AsyncMethod<T>, true>

const catalog: All<Catalog> = {
  find: true,
  read: true,
  list: true,
  explain: true,
  usage: true,
  stage: true,
  staged: true,
  unstage: true,
  publish: true,
  pin: true,
  renew: true,
  release: true,
  lease: true,
  candidates: true,
  stageCandidates: true,
  due: true,
  mark: true,
  remove: true,
  trash: true,
  known: true,
  discard: true,
  dropped: true,
  maintain: true
}
const meta: All<PoolMeta> = { read: true, compareAndSet: true }
const lease: All<Lease> = { release: true }
const live: All<NonNullable<Lease['live']>> = { add: true }
const sqlLiveness: All<SqlLiveness> = { register: true, liveBy: true, among: true }
const catalogServer: All<ServerCatalog> = { identity: true, unfit: true }
const joining: All<Joining> = { join: true }
const joined: All<JoinedTransaction> = { publish: true }
const bodies: All<BodyStore> = {
  claimed: true,
  claim: true,
  create: true,
  read: true,
  length: true,
  drop: true,
  reclaim: true,
  scan: true
}
const writer: All<BodyWriter> = { write: true, seal: true, discard: true }
const bodiesServer: All<ServerMedium> = { identity: true }
const definition: All<EngineDefinition> = { open: true }
const engine: All<Engine> = { close: true }

const names = <T extends Record<string, true>>(methods: T) => Object.keys(methods) as (keyof T & string)[]

/** The methods of each part of an engine, by the path of the part. */
export const METHODS = {
  definition: names(definition),
  engine: names(engine),
  catalog: names(catalog),
  'catalog.meta': names(meta),
  'catalog.lease': names(lease),
  'catalog.lease.live': names(live),
  'catalog.sqlLiveness': names(sqlLiveness),
  'catalog.server': names(catalogServer),
  'catalog.joining': names(joining),
  'catalog.joining.joined': names(joined),
  bodies: names(bodies),
  'bodies.writer': names(writer),
  'bodies.server': names(bodiesServer)
} as const

/** The path of a part of an engine. */
export type Part = keyof typeof METHODS
/** One method of the contract, such as `catalog.publish` or `bodies.writer.seal`. */
export type FaultPoint = { [P in Part]: `${P}.${(typeof METHODS)[P][number]}` }[Part]

/** Every point there is, in the order of the contract. */
export const FAULT_POINTS: readonly FaultPoint[] = Object.entries(METHODS).flatMap(([part, methods]) =>
  methods.map(method => `${part}.${method}` as FaultPoint)
)
