/**
 * The store under test beside its model: the open stores of one pool, what callers hold of them, and the switches in their
 * engines that let a process die or a medium fail.
 */
import type { Pin, Protection, PutReceipt, Store } from '@alkblobs/core'
import type { BlobKey, BodyWriter, Catalog, EngineDefinition } from '@alkblobs/core/engine'
import { EngineFault } from '@alkblobs/core/engine'
import type { ApplicationTable, OpenTuning, StoreFactory } from '../factory.js'
import { type Operation, tapped, watch } from '../tap.js'
import { type ModelContent, modelContents } from './contents.js'
import { Holder, type HoldModel, type SourceModel } from './holder.js'
import { PIN_TTL_MS, PoolModel, type WriterModel } from './pool.js'

/** How the pool of a run is tuned. */
export interface ModelSetup {
  /** 0, or longer than any run takes. */
  readonly windowDelayMs: number
  readonly trashDelayMs: number
  /** Most keys in a page of candidates or due rows; `undefined`: as many as core asks for. */
  readonly pageLimit: number | undefined
  /** Whether the first store begins with a liveness source that references nothing: without any, sweeps do nothing. */
  readonly isProtected: boolean
}

/** What the engines of one store are told from outside. */
interface Switches {
  /** Its process has ended: nothing reaches the medium any more. */
  isDead: boolean
  /** The medium cannot be read. */
  failsReads: boolean
  /** The next operation of this name fails before it does anything. */
  failsOnce: Operation | undefined
  /** Whether its leases judge enumerated keys; known after the first. */
  catalogJudges: boolean
  /** What a dead process would have freed by dying: its open bodies. */
  readonly left: (() => Promise<void>)[]
}

export interface ProtectionHeld {
  readonly source: SourceModel
  readonly protection: Protection
  readonly table?: ApplicationTable
}

export interface OpenStore {
  readonly store: Store
  readonly holder: Holder
  readonly switches: Switches
  readonly protections: ProtectionHeld[]
}

/** A receipt or pin that was handed out, released or not. */
export interface HandedOut {
  readonly hold: HoldModel
  readonly thing: PutReceipt | Pin
}

export interface WriterHeld {
  readonly model: WriterModel
  readonly at: OpenStore
  readonly writer: ReturnType<Store['writer']>
}

/** The key of no content. */
const ABSENT = `sha256:${'ab'.repeat(32)}`

const READS: readonly Operation[] = ['find', 'read', 'list', 'explain', 'usage', 'length']

function wrapOf(switches: Switches, pageLimit: number | undefined): (definition: EngineDefinition) => EngineDefinition {
  const assertAlive = () => {
    if (switches.isDead) throw new EngineFault('transient', 'the process of this store has ended')
  }
  const limited = (limit: number) => Math.min(limit, pageLimit ?? limit)
  const watched = watch({
    before(operation) {
      assertAlive()
      const isFailing = switches.failsOnce === operation || (switches.failsReads && READS.includes(operation))
      if (switches.failsOnce === operation) switches.failsOnce = undefined
      if (isFailing) throw Object.assign(new Error('EIO: i/o error'), { code: 'EIO' })
    }
  })
  return definition =>
    tapped(watched(definition), {
      catalog: (inner: Catalog) => ({
        candidates: (lease, after, limit, call) => inner.candidates(lease, after, limited(limit), call),
        due: (lease, after, limit, call) => inner.due(lease, after, limited(limit), call),
        async lease(call) {
          const lease = await inner.lease(call)
          // A lease that was refused tells nothing: a sweep that contends with one of its own store leaves what is known.
          if (lease !== undefined) switches.catalogJudges = lease.live !== undefined
          return lease
        }
      }),
      writer: (inner: BodyWriter) => ({
        async write(chunk) {
          assertAlive()
          await inner.write(chunk)
        },
        async discard() {
          if (switches.isDead) switches.left.push(() => inner.discard())
          assertAlive()
          await inner.discard()
        }
      })
    })
}

/** The contents of a factory's runs. */
export function contentsOf({ threshold, traits }: StoreFactory): readonly ModelContent[] {
  return modelContents({ threshold, refusesLonger: traits.includes('kv-only') })
}

/** One run: the model, and everything real that belongs to it. */
export class World {
  readonly factory: StoreFactory
  readonly setup: ModelSetup
  readonly pool: PoolModel
  readonly open: OpenStore[] = []
  readonly handedOut: HandedOut[] = []
  readonly writers: WriterHeld[] = []
  /** Names of sources are never used twice. */
  sources = 0
  readonly #all: Switches[] = []

  private constructor(factory: StoreFactory, setup: ModelSetup, pool: PoolModel) {
    this.factory = factory
    this.setup = setup
    this.pool = pool
  }

  /** A fresh pool of the factory, tuned by the setup. */
  static async begin(factory: StoreFactory, setup: ModelSetup): Promise<World> {
    const contents = contentsOf(factory)
    const { switches, tuning } = tuned(factory, setup, {})
    const store = await factory.open(tuning)
    const { form, mode } = store
    const { traits } = factory
    const is = { hasTwoCatalogs: traits.includes('two-catalogs'), revives: !traits.includes('fleet') }
    const world = new World(factory, setup, new PoolModel(contents, { ...setup, form, mode, ...is }))
    world.#add(store, switches)
    return world
  }

  get contents(): readonly ModelContent[] {
    return this.pool.contents
  }

  keyOf(content: number): BlobKey {
    return (this.contents[content] as ModelContent).key
  }

  /** The open store that a command means by a number. */
  at(number: number): OpenStore {
    return this.open[number % this.open.length] as OpenStore
  }

  numberOf(key: string): number {
    return this.contents.findIndex(content => content.key === key)
  }

  /** Another store on the same medium. */
  async second(): Promise<void> {
    const { factory, pool, setup } = this
    const { switches, tuning } = tuned(factory, setup, { windowDelayMs: pool.windowDelayMs })
    if (factory.second === undefined) throw new TypeError(`${factory.name} has no second store`)
    this.#add(await factory.second(this.at(0).store, tuning), switches)
  }

  /** Ends a store, by its close or by the death of its process, and opens the pool anew by `reopen`. */
  async restart(at: OpenStore, threshold: number, reopen: (store: Store, tuning: OpenTuning) => Promise<Store>) {
    const { factory, pool, setup } = this
    const { switches, tuning } = tuned(factory, setup, { threshold, windowDelayMs: pool.windowDelayMs })
    const store = await reopen(at.store, tuning)
    this.remove(at)
    this.#add(store, switches)
  }

  remove(at: OpenStore): void {
    this.open.splice(this.open.indexOf(at), 1)
    this.pool.holders.splice(this.pool.holders.indexOf(at.holder), 1)
  }

  hold(content: number, holder: Holder, thing: PutReceipt | Pin): void {
    this.handedOut.push({ hold: holder.hold(content), thing })
  }

  /**
   * Brings every release to the catalog: `why` does so before it looks. In a fleet those who act renew first, by a delete of what is
   * absent: a row that they lose is released too, and that must not come in the middle of what they do.
   */
  async settle(acting: readonly number[]): Promise<void> {
    for (const { store, holder } of acting.map(number => this.at(number))) {
      if (this.pool.revives || !holder.losesPins(this.pool)) continue
      await store.delete(ABSENT)
      holder.flush(this.pool)
      holder.renew(this.pool)
    }
    for (const { store, holder } of this.open) {
      if (holder.released.size === 0) continue
      await store.why(this.keyOf(0))
      holder.flush(this.pool)
    }
  }

  /** Frees what stores that died in this process have left open. Their media may be closed by now. */
  async bury(): Promise<void> {
    for (const { left } of this.#all) for (const free of left) await free().catch(closedWithItsMedium)
  }

  #add(store: Store, switches: Switches): void {
    this.#all.push(switches)
    const holder = new Holder(store.threshold)
    this.pool.holders.push(holder)
    this.open.push({ store, holder, switches, protections: [] })
  }
}

function tuned(
  factory: StoreFactory,
  { pageLimit, windowDelayMs, trashDelayMs }: ModelSetup,
  now: { readonly threshold?: number; readonly windowDelayMs?: number }
): { switches: Switches; tuning: OpenTuning } {
  const switches: Switches = { isDead: false, failsReads: false, failsOnce: undefined, catalogJudges: false, left: [] }
  const threshold = factory.threshold === undefined ? {} : { threshold: now.threshold ?? factory.threshold }
  const wrap = wrapOf(switches, pageLimit)
  const delays = { windowDelayMs: now.windowDelayMs ?? windowDelayMs, trashDelayMs }
  // Keys that `node:crypto` can tell: the model must not ask the store for them.
  return { switches, tuning: { derivation: 'sha256', pinTtlMs: PIN_TTL_MS, ...delays, ...threshold, wrap } }
}

function closedWithItsMedium(): void {}
