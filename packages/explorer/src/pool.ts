/** The media of one schedule and the stores that are opened over them. */
import { openStore, type Store } from '@alkblobs/core'
import type { Catalog, EngineDefinition, Lease, ServerCatalog } from '@alkblobs/core/engine'
import { createMedium, type MemMedium, mem } from '@alkblobs/engine-mem'
import type { Bug, Planting } from './bug.js'
import { type Configuration, PIN_TTL_MS, SERVER_AHEAD_MS, STAGE_TTL_MS, THRESHOLD } from './configuration.js'
import { Bodies, BodyMedium } from './durable/bodies.js'
import { catalogOf } from './durable/catalog.js'
import { definitionOf } from './durable/engine.js'
import { DurableMedium } from './durable/medium.js'
import { Rules } from './durable/rules.js'
import { scheduledBodies } from './scheduled-bodies.js'
import { type Scheduling, scheduledCatalog } from './scheduled-catalog.js'
import { type Stillness, stillnessOf } from './still.js'
import { copyOfMem, rowsOfMem, type View, viewOfDurable, viewOfMem } from './view.js'
import type { World } from './world.js'

/** Everything that outlives an instance. */
export interface Media {
  readonly catalog: DurableMedium | MemMedium
  readonly bodies: BodyMedium
}

export function freshMedia({ form, fleet = false }: Configuration): Media {
  const durable = () => new DurableMedium(fleet ? SERVER_AHEAD_MS : 0)
  return { catalog: form === 'inline' ? createMedium() : durable(), bodies: new BodyMedium() }
}

/** What makes a catalog one that a fleet may share; none of it changes, so none of it is a step. */
const SERVER: ServerCatalog = {
  sessionsMax: 2,
  identity: async () => ({ system: 'the server', database: '1', timeline: 1 }),
  unfit: async () => undefined
}

export class Pool {
  readonly view: View
  readonly bodies: BodyMedium
  readonly durable: DurableMedium | undefined
  readonly still: Stillness
  readonly #mem: MemMedium | undefined
  readonly #world: World
  readonly #configuration: Configuration
  readonly #bug: Bug | undefined
  readonly #leases = new Map<string, Lease[]>()

  constructor(
    { catalog, bodies }: Media,
    world: World,
    configuration: Configuration,
    { bug, stills }: { readonly bug: Bug | undefined; readonly stills: boolean }
  ) {
    this.#world = world
    this.#configuration = configuration
    this.#bug = bug
    this.bodies = bodies.copy()
    this.still = stillnessOf(configuration, stills && bug === undefined)
    if (catalog instanceof DurableMedium) {
      this.durable = catalog.copy()
      const { clockAheadMs } = this.durable
      this.view = viewOfDurable(this.durable, () => world.clockMs + clockAheadMs)
    } else {
      this.#mem = copyOfMem(catalog)
      this.view = viewOfMem(this.#mem)
    }
  }

  /** The media as they are now, for schedules that start from here. */
  get media(): Media {
    return { catalog: (this.durable ?? this.#mem) as DurableMedium | MemMedium, bodies: this.bodies }
  }

  open(who: string, splits: boolean): Promise<Store> {
    const { large = false, windowDelayMs = 0, trashDelayMs = 0, fleet = false } = this.#configuration
    const onLease = (lease: Lease) => void this.#leases.set(who, [...(this.#leases.get(who) ?? []), lease])
    const how: Scheduling = { world: this.#world, who, splits, still: this.still, onLease }
    return openStore({
      kv: this.#catalogEngine(how),
      ...(large ? { large: this.#bodiesEngine(how) } : {}),
      threshold: THRESHOLD,
      derivation: 'sha256',
      windowDelayMs,
      trashDelayMs,
      pinTtlMs: PIN_TTL_MS,
      stageTtlMs: STAGE_TTL_MS,
      ...(fleet ? { fleet: { instanceId: who, sharedMedia: 'operator-declared' } } : { instanceId: who })
    })
  }

  /** What an operating system does for a process that ended: its locks are free. */
  buried(who: string): void {
    for (const lease of this.#leases.get(who) ?? []) void lease.release()
  }

  #planting({ who, world }: Scheduling): Planting {
    const mem = this.#mem && rowsOfMem(this.#mem)
    return { world, who, bodies: this.bodies, mem, durable: this.durable }
  }

  #catalogEngine(how: Scheduling): EngineDefinition {
    const plant = (inner: Catalog) => this.#bug?.catalog?.(inner, this.#planting(how)) ?? inner
    const scheduled = (inner: Catalog) => scheduledCatalog(plant(inner), how)
    if (this.#mem !== undefined) {
      const definition = mem({ medium: this.#mem })
      return {
        name: 'mem',
        async open(context) {
          const engine = await definition.open(context)
          return { ...engine, catalog: scheduled(engine.catalog as Catalog) }
        }
      }
    }
    const rules = new (this.#bug?.rules ?? Rules)(this.durable as DurableMedium, how.who)
    const mint = () => this.#world.unique(16).toString('hex')
    const server = this.#configuration.fleet === true ? { server: SERVER } : {}
    return definitionOf('durable', { catalog: scheduled({ ...catalogOf(rules, mint), ...server }) })
  }

  #bodiesEngine(how: Scheduling): EngineDefinition {
    const inner = new Bodies(this.bodies)
    const planted = this.#bug?.bodies?.(inner, this.#planting(how)) ?? inner
    return definitionOf('bodies', { bodies: scheduledBodies(planted, how) })
  }
}
