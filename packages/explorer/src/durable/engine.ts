/** The durable catalog and the body store as engines that `openStore` takes. */
import {
  type BodyStore,
  type Catalog,
  type Engine,
  type EngineDefinition,
  EngineFault,
  type ErrorCode
} from '@alkblobs/core/engine'

/** An engine that is open whenever it is asked for: its medium outlives whoever uses it. */
export function definitionOf(name: string, offers: { catalog: Catalog } | { bodies: BodyStore }): EngineDefinition {
  const engine: Engine = { name, version: '0', durability: 'disk', classify, async close() {}, ...offers }
  return {
    name,
    async open() {
      return engine
    }
  }
}

function classify(error: unknown): ErrorCode {
  return error instanceof EngineFault ? error.code : 'unknown'
}
