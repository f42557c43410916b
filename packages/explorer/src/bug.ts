/** A planted bug: one rule of the protocol broken, everything else exact. */
import type { BodyStore, Catalog } from '@alkblobs/core/engine'
import type { BodyMedium } from './durable/bodies.js'
import type { DurableMedium } from './durable/medium.js'
import type { Rules } from './durable/rules.js'
import type { MemRows } from './view.js'
import type { World } from './world.js'

export interface Bug {
  readonly name: string
  /** The rule of the contract or the design that it breaks. */
  readonly breaks: string
  /** Takes the place of the rules of the durable form. */
  readonly rules?: new (
    medium: DurableMedium,
    who: string
  ) => Rules
  /** Wraps the catalog of an instance, below its steps. */
  readonly catalog?: (inner: Catalog, at: Planting) => Catalog
  readonly bodies?: (inner: BodyStore, at: Planting) => BodyStore
}

/** What a bug that is planted around an engine may use. */
export interface Planting {
  readonly world: World
  readonly who: string
  readonly bodies: BodyMedium
  /** The rows of an inline pool. */
  readonly mem: MemRows | undefined
  readonly durable: DurableMedium | undefined
}
