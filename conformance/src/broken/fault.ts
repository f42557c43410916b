/** A planted fault: an engine that is wrong in one way, and the rows that must notice. */
import type { EngineDefinition } from '@alkblobs/core/engine'
import type { OpenTuning, StoreFactory, Trait } from '../factory.js'

/** An engine of any kind made wrong from outside. It is the test of the tests: a suite that passes it is worth nothing. */
export interface PlantedFault {
  readonly name: string
  /** What the engine does wrong, in one sentence. */
  readonly statement: string
  /** What a column must have for the fault to show. */
  readonly needs: readonly Trait[]
  /** Exactly the rows that fail. */
  readonly caughtBy: readonly string[]
  /** Called once for each store that is opened; the answer wraps each of its engines, and they may share what they know. */
  plant(): (definition: EngineDefinition) => EngineDefinition
}

/** The factory with the fault in every store it opens. The fault lies outside of what a row hangs into the engine. */
export function planted(factory: StoreFactory, fault: PlantedFault): StoreFactory {
  const wrong = (tuning: OpenTuning = {}): OpenTuning => {
    const plant = fault.plant()
    return { ...tuning, wrap: definition => plant(tuning.wrap === undefined ? definition : tuning.wrap(definition)) }
  }
  const { second, reopen, foreign } = factory
  return {
    ...factory,
    name: `${factory.name}, ${fault.name}`,
    open: tuning => factory.open(wrong(tuning)),
    ...(second === undefined ? {} : { second: (store, tuning) => second(store, wrong(tuning)) }),
    ...(reopen === undefined ? {} : { reopen: (store, tuning) => reopen(store, wrong(tuning)) }),
    ...(foreign === undefined ? {} : { foreign: (store, tuning) => foreign(store, wrong(tuning)) })
  }
}
