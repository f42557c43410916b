/**
 * What a column brings: a way to make stores over one engine configuration, and optionally a way to look at the medium
 * behind the store's back. Whoever writes an engine writes one of these; the rows do the rest.
 */
import type { Store, StoreOptions, TableSource } from '@alkblobs/core'
import type { BlobKey, EngineDefinition } from '@alkblobs/core/engine'

/**
 * What a configuration can do, as data. Rows name the traits they need, and run wherever those are declared.
 *
 * | trait | the factory promises |
 * |---|---|
 * | `mem-only`, `kv-only`, `dual-tier` | the mode of its stores; exactly one |
 * | `inline`, `durable` | the form its sweeps run in; exactly one |
 * | `second` | `second()`: another live instance on the same medium |
 * | `reopen` | `reopen()`: the pool after its store closed, with everything that was committed |
 * | `foreign` | `foreign()`: a new pool that is handed the large medium of another |
 * | `medium` | `medium()`: an oracle that counts |
 * | `age` | the oracle can `age` what the medium stores and `expirePins` |
 * | `corrupt` | the oracle can `corrupt` bodies of the large tier |
 * | `corrupt-inline` | the oracle can `corrupt` bodies of the kv tier |
 * | `handles` | the oracle counts what is open on the medium |
 * | `refuse` | the oracle can make the medium `refuse` entries |
 * | `root`, `file`, `schema` | a medium is a folder / a database file / a schema of a server: the rows about these media |
 * | `large-objects` | bodies are large objects of a database server |
 * | `dormant` | the kv tier keeps the catalog, and that of the large tier is not used: the oracle tells `largeTables` |
 * | `two-catalogs` | the kv tier is memory, and the catalog of the large tier keeps what is long: the oracle tells `largeTables` |
 * | `tables` | the oracle makes tables of an `application` beside the catalog |
 * | `transactions` | the oracle can hold a transaction open that pins: `pinInTransaction` |
 * | `joins` | its stores can join transactions of an application, of which the oracle begins one: `transaction` |
 * | `fleet` | its stores are instances of a fleet, `second` joins it, and nothing revives an expired pin; the oracle has `pinRows`, `refusePins` and `endSessions` |
 * | `two-servers` | `apart()`: a pool whose large objects are on another server |
 * | `copy` | `copy()`: the media of a pool, copied as an operator would |
 */
export const TRAITS = [
  'mem-only',
  'kv-only',
  'dual-tier',
  'inline',
  'durable',
  'second',
  'reopen',
  'foreign',
  'medium',
  'age',
  'corrupt',
  'corrupt-inline',
  'handles',
  'refuse',
  'root',
  'file',
  'schema',
  'large-objects',
  'dormant',
  'two-catalogs',
  'tables',
  'transactions',
  'joins',
  'fleet',
  'two-servers',
  'copy'
] as const

/** One of {@link TRAITS}. */
export type Trait = (typeof TRAITS)[number]

/** What a row may ask of a store it opens. A factory passes all of it on to `openStore`; `fleet` stands in for the column's own, whole. */
export interface OpenTuning extends Partial<Omit<StoreOptions, 'kv' | 'large'>> {
  /** Wraps each engine of the store; the row watches or delays the calls that core makes. A factory MUST apply it to every engine. */
  readonly wrap?: (definition: EngineDefinition) => EngineDefinition
}

/** How an engine of a column names itself in the report. */
export interface EngineSummary {
  readonly name: string
  readonly version: string
  /** The properties of the contract that the engine has: `catalog`, `bodies`, `sqlLiveness`, … */
  readonly capabilities: readonly string[]
  /** The server that it ran on, with its version, for an engine that needs one. */
  readonly server?: string
}

/** How a body is damaged. `flip`: one byte; `truncate`: the last byte is gone; `directory`: something else lies there. */
export type Damage = 'flip' | 'truncate' | 'empty' | 'remove' | 'directory'

/** What lies on the medium. Everything but `inlineEntries` and `bodies` is zero at rest. */
export interface MediumCounts {
  /** Entries whose bytes lie in the catalog. */
  readonly inlineEntries: number
  /** Sealed bodies on the large medium, whoever owns them. */
  readonly bodies: number
  /** Uncommitted writes: stage rows, and half-written bodies. */
  readonly stages: number
  readonly trash: number
  readonly window: number
  readonly pins: number
}

/** A table of the application that embeds the store, in the database of the catalog. */
export interface ApplicationTable {
  /** What `store.protect` takes. */
  readonly source: TableSource
  reference(keys: readonly BlobKey[]): Promise<void>
  forget(keys: readonly BlobKey[]): Promise<void>
  /** All that somebody could have changed about the table, its rows included, in a form that can be compared. */
  look(): Promise<unknown>
  drop(): Promise<void>
}

/** A transaction of somebody else that has done its work and is still open. */
export interface OpenTransaction {
  commit(): Promise<void>
  rollback(): Promise<void>
}

/** A transaction of the application's, on a session of its own. */
export interface JoinableTransaction extends OpenTransaction {
  /** What `store.joining` takes. After the transaction's end its session goes on outside of any. */
  readonly handle: unknown
  /** Gives the session back; a transaction that is still open is rolled back. */
  release(): Promise<void>
}

/** A pin row as it lies on the medium. */
export interface StoredPin {
  readonly owner: string
  readonly generation: number
  /** Time since the epoch in milliseconds. */
  readonly expiresAtMs: number
  /** By the medium's own clock. */
  readonly isExpired: boolean
}

/** Looks at one store's medium over a connection of its own, never through the store. */
export interface MediumOracle {
  counts(): Promise<MediumCounts>
  /** Whether anything was created on the medium at all. */
  exists(): Promise<boolean>
  /** With `age`: shifts every stored time (window, stages, trash, pins) back, as if `byMs` milliseconds had passed. */
  age?(byMs: number): Promise<void>
  /** With `age`: makes every pin row, or the rows of one key, expired. With `fleet` also the one row of a key and an owner. */
  expirePins?(key?: BlobKey, owner?: string): Promise<void>
  /** With `fleet`: the pin rows of a key, in order of their owners. */
  pinRows?(key: BlobKey): Promise<readonly StoredPin[]>
  /** With `fleet`: the medium fails, and undoes, every transaction that writes a pin, until it is told otherwise. */
  refusePins?(isRefusing: boolean): Promise<void>
  /** With `fleet`: ends every session of this one store, as a cut network does, and waits until they are gone. */
  endSessions?(): Promise<void>
  /** With `corrupt` or `corrupt-inline`: damages the stored bytes of a key. */
  corrupt?(key: BlobKey, how: Damage): Promise<void>
  /** With `handles`: what the store holds open on the medium (descriptors, cursors, sessions that are not idle). */
  handles?(): Promise<number>
  /** With `refuse`: the medium fails, and undoes, every transaction that makes an entry of that length; `undefined`: it is well again. */
  refuse?(length: number | undefined): Promise<void>
  /** With `tables`: a new table that references nothing yet, with keys as text or as their bytes; it goes with the teardown. */
  application?(form: 'text' | 'bytes'): Promise<ApplicationTable>
  /** With `transactions`: somebody else pins a key for an hour, and has not committed it. */
  pinInTransaction?(key: BlobKey): Promise<OpenTransaction>
  /** With `joins`: begins a transaction where entries are, as an application would. */
  transaction?(): Promise<JoinableTransaction>
  /** With `dormant` or `two-catalogs`: the names of the tables in the large tier's schema. */
  largeTables?(): Promise<readonly string[]>
  /** With `root`: replaces every folder a body could go into by a link that leads out of the root; answers a count of what went there. */
  linkOut?(): Promise<() => Promise<number>>
  /** With `root`: removes folders that hold nothing, as a zealous cleaner would. */
  removeEmptyFolders?(): Promise<void>
}

/** One column. `open` gives a fresh, isolated store each time; nothing is shared between two of them. */
export interface StoreFactory {
  readonly name: string
  readonly traits: readonly Trait[]
  /** The threshold its stores are opened with; `undefined` for `mem-only`. */
  readonly threshold: number | undefined
  /** The engines of the column as they call themselves. */
  engines(): Promise<readonly EngineSummary[]>
  /** A new pool, tuned for tests unless told otherwise: `windowDelayMs` 0 and `trashDelayMs` 0. */
  open(tuning?: OpenTuning): Promise<Store>
  /** Another instance on the medium of `store`, which stays open. */
  second?(store: Store, tuning?: OpenTuning): Promise<Store>
  /** The pool of `store` once more. `store` is closed first if it is open. */
  reopen?(store: Store, tuning?: OpenTuning): Promise<Store>
  /** A new pool whose large medium is the one of `store`. */
  foreign?(store: Store, tuning?: OpenTuning): Promise<Store>
  /** A new pool whose large objects are on another server than its catalog. */
  apart?(tuning?: OpenTuning): Promise<Store>
  /** A store over a copy of the media of `store`, which is closed first if it is open. */
  copy?(store: Store, tuning?: OpenTuning): Promise<Store>
  medium?(store: Store): MediumOracle
  /** Removes exactly what this factory made. Idempotent; works over closed, open and abandoned stores. */
  teardown(): Promise<void>
}

/** The lacking traits for which a row does not apply to a factory; empty when it applies. */
export function lacking(factory: Pick<StoreFactory, 'traits'>, needs: readonly Trait[]): readonly Trait[] {
  return needs.filter(trait => !factory.traits.includes(trait))
}

/** The oracle of a store, for rows that need `medium`. */
export function oracleOf(factory: StoreFactory, store: Store): MediumOracle {
  if (factory.medium === undefined) throw new TypeError(`the factory ${factory.name} declares a medium it has not`)
  return factory.medium(store)
}
