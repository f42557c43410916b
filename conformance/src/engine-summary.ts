/** How an engine is named in the report: by what it says of itself, and by which parts of the contract it has. */
import type { EngineDefinition, OpenContext } from '@alkblobs/core/engine'
import type { EngineSummary } from './factory.js'

const CONTEXT: OpenContext = { algorithm: 'blake3', lockTimeoutMs: 5_000, connectTimeoutMs: 10_000 }

/** Opens the engine, asks for its name, version and capabilities, and closes it. Creates nothing on an embedded medium. */
export async function summaryOf(definition: EngineDefinition): Promise<EngineSummary> {
  const engine = await definition.open(CONTEXT)
  try {
    const { name, version, durability, catalog, bodies } = engine
    const capabilities = [`durability:${durability}`]
    if (catalog !== undefined) capabilities.push('catalog', `form:${catalog.form}`)
    if (catalog?.sqlLiveness !== undefined) capabilities.push('sqlLiveness')
    if (bodies !== undefined) capabilities.push('bodies')
    return { name, version, capabilities }
  } finally {
    await engine.close()
  }
}
