/**
 * One schedule: its media, its instances, what the application did with them. Begun with the same choices it goes the same way.
 */

import type { Pin, Store, SweepReport } from '@alkblobs/core'
import type { BlobKey } from '@alkblobs/core/engine'
import { enter, rest } from './ambient.js'
import type { Bug } from './bug.js'
import { type ActorPlan, CONTENTS, type Configuration, type Content, keyOf } from './configuration.js'
import { happen } from './events.js'
import type { Footprint } from './footprint.js'
import { Invariants } from './invariants.js'
import { freshMedia, type Media, Pool } from './pool.js'
import { World } from './world.js'

/** A pin that somebody holds. */
export interface Hold {
  readonly who: string
  readonly key: BlobKey
  readonly pin: Pin
  /** Whether it was seen not to be held any more. */
  isLost: boolean
}

/** A key that a put without a pin left to the window delay alone. */
export interface Guarded {
  readonly key: BlobKey
  readonly untilMs: number
}

/** What an operation works with. */
export interface Actor {
  readonly who: string
  readonly store: Store
  readonly run: Run
  /** A step of the application itself. */
  step(label: string, touches: Footprint, effect: () => void): Promise<void>
  /** Tells what came of an operation, to the story and to the state. */
  note(what: string): void
}

interface BeginHow {
  readonly bug?: Bug | undefined
  /** Whether the story is kept. Default false. */
  readonly tells?: boolean
  /** Whether calls that commute with everything happen at once. Default true. */
  readonly stills?: boolean
}

export class Run {
  readonly world: World
  readonly pool: Pool
  readonly configuration: Configuration
  readonly stores = new Map<string, Store>()
  /** The application's own table: the keys that it references. */
  readonly references = new Set<BlobKey>()
  readonly holds = new Set<Hold>()
  readonly guarded: Guarded[] = []
  readonly reports: SweepReport[] = []
  readonly invariants: Invariants
  /** Rows of the window before the explored part. */
  readonly windowBefore: number
  /** Those who have not ended, nor had their process end. */
  readonly #acting = new Set<ActorPlan>()

  private constructor(world: World, pool: Pool, configuration: Configuration) {
    this.world = world
    this.pool = pool
    this.configuration = configuration
    this.windowBefore = pool.view.counts().window
    this.invariants = new Invariants(this)
  }

  /** The media that every schedule of the configuration starts from. */
  static async prepare(
    configuration: Configuration,
    bug?: Bug
  ): Promise<{ media: Media; references: ReadonlySet<BlobKey> }> {
    const world = new World(false, shortener(configuration))
    const fresh = { media: freshMedia(configuration), references: new Set<BlobKey>() }
    const run = await Run.#on(world, fresh, configuration, bug)
    if (configuration.isVirgin === true) return fresh
    await run.#open('Z')
    const actor = run.actorOf('Z')
    await make(actor.store, configuration)
    await rest()
    for (const operation of configuration.before ?? []) {
      await operation.run(actor)
      await rest()
    }
    await actor.store.close()
    await rest()
    if (world.violations.length > 0) throw new Error(`${configuration.name}, before: ${world.violations.join('; ')}`)
    return { media: run.pool.media, references: run.references }
  }

  /** A schedule from prepared media, with every actor waiting for its first step. */
  static async begin(
    prepared: Awaited<ReturnType<typeof Run.prepare>>,
    configuration: Configuration,
    { bug, tells = false, stills = true }: BeginHow = {}
  ): Promise<Run> {
    const world = new World(tells, shortener(configuration))
    const run = await Run.#on(world, prepared, configuration, bug, stills)
    const { actors, events = [], isVirgin = false } = configuration
    for (const who of new Set(actors.map(({ on }) => on))) await run.#open(who)
    if (!isVirgin) for (const store of run.stores.values()) await establish(store)
    await rest()
    run.invariants.begin()
    world.isExploring = true
    for (const plan of actors) {
      void world.as(plan.on, () => run.#act(plan))
      await rest()
    }
    for (const [n, event] of events.entries()) void happen(run, event, n)
    return run
  }

  static async #on(
    world: World,
    { media, references }: { media: Media; references: ReadonlySet<BlobKey> },
    configuration: Configuration,
    bug: Bug | undefined,
    stills = true
  ): Promise<Run> {
    enter(world)
    const run = new Run(world, new Pool(media, world, configuration, { bug, stills }), configuration)
    for (const key of references) run.references.add(key)
    return run
  }

  /** Whether anything is left to do for anybody who still runs. */
  get isUnderWay(): boolean {
    return this.#acting.size > 0
  }

  actorOf(who: string): Actor {
    const { world } = this
    return {
      who,
      store: this.stores.get(who) as Store,
      run: this,
      step: (label, touches, effect) => world.happening(who, label, touches, effect),
      note: what => world.note(who, what)
    }
  }

  keyOf(content: Content): BlobKey {
    return keyOf(content, this.configuration.large === true)
  }

  /** Whether somebody asks for removals, beside sweeps and repairs. */
  get hasDeletes(): boolean {
    return this.configuration.actors.some(({ does }) => does.some(({ uses = [] }) => uses.includes('deletes')))
  }

  /** A process ends: what it held, it holds no more. */
  crashed(who: string): void {
    this.world.end(who)
    this.pool.buried(who)
    for (const hold of this.holds) if (hold.who === who) this.holds.delete(hold)
    for (const plan of this.#acting) if (plan.on === who) this.#acting.delete(plan)
  }

  /** Everything the further course depends on, in one text. */
  digest(): string {
    const holds = [...this.holds].map(({ who, key, isLost }) => who + key + isLost).sort()
    const { view, bodies } = this.pool
    const parts = [this.world.digest(), view.dump(), bodies.dump(), [...this.references].sort(), holds]
    return `${parts.join('|')}|${this.invariants.digest()}`
  }

  async #act(plan: ActorPlan): Promise<void> {
    const { on, does } = plan
    this.#acting.add(plan)
    const actor = this.actorOf(on)
    const isShared = this.configuration.actors.filter(plan => plan.on === on).length > 1
    for (const operation of does) {
      // Two sequences on one instance meet in its memory: where one begins is then a step of its own.
      if (isShared) await this.world.happening(on, `begins to ${operation.name}`, {}, () => undefined)
      await operation.run(actor)
    }
    this.#acting.delete(plan)
  }

  async #open(who: string): Promise<Store> {
    const { actors, source = 'enumerating' } = this.configuration
    const isShared = actors.filter(({ on }) => on === who).length > 1
    // A server answers over a network: time may pass between the effect of a call and its answer.
    const splits = isShared || this.configuration.fleet === true
    const store = await this.world.as(who, () => this.pool.open(who, splits))
    this.stores.set(who, store)
    const { world, references } = this
    const asking = { who, touches: { reads: ['references'] } as Footprint, isStill: this.pool.still.has('references') }
    if (source === 'enumerating') {
      store.protect({
        name: 'the application',
        live: () => world.act({ ...asking, label: 'asks for every reference', effect: async () => [...references] })
      })
    } else {
      store.protect({
        name: 'the application',
        isLive: keys => {
          const effect = async () => keys.filter(key => references.has(key))
          return world.act({ ...asking, label: `asks for references to ${keys.join()}`, effect })
        }
      })
    }
    return store
  }
}

/** Makes the pool by a put of something else, and takes that out again. */
async function make(store: Store, { large = false }: Configuration): Promise<void> {
  const receipt = await store.put(large ? 'something else' : '-')
  await receipt.release()
  await store.delete(receipt.key)
}

/** Binds the store to the pool, so that the explored part begins with the operation itself. */
async function establish(store: Store): Promise<void> {
  await store.delete(keyOf('K1', false).replace(/.$/, digit => (digit === '0' ? '1' : '0')))
}

/** Names as a reader knows them: contents by theirs, stages and marks by who made them. */
function shortener({ large = false }: Configuration): (text: string) => string {
  const keys = CONTENTS.map(content => ({ content, key: keyOf(content, large) }))
  return text => {
    let short = text
    for (const { content, key } of keys) {
      short = short.replaceAll(key, content).replaceAll(`.${key.slice('sha256:'.length)}`, `.${content}`)
    }
    return short.replace(/\b([0-9a-f]{2})0{6,}([0-9a-f]+)/g, (_, who: string, count: string) => {
      return `${String.fromCharCode(Number.parseInt(who, 16))}#${count}`
    })
  }
}
