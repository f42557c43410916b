/**
 * The catalog that the PostgreSQL engines share: entries with small bodies inline, pins, the window, stages, trash, the lease,
 * in a schema that belongs to the engine alone.
 *
 * To find the way: `schema.ts` says what lies in the schema and how it comes to be, `pool.ts` when it is a pool, `joiner.ts` how
 * concurrent publications share a commit, `catalog/` holds one file for each thing a catalog does.
 */
export { type CatalogSettings, type OpenCatalog, openCatalog } from './catalog/index.js'
export { Layout, type SchemaPart } from './schema.js'
export { isContention, isMissing, sqlStateOf, untilFree } from './waiting.js'
