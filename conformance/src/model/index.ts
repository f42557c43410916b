/**
 * The models: a store, a catalog or a body store against plain data, step by random step. Give them the factory of your column,
 * or your engine; they compare every answer and every report. Needs `fast-check`.
 */
export type { ModelOptions, ModelRuns } from './checks.js'
export type { BodiesUnderTest } from './engine/body-steps.js'
export type { CatalogUnderTest } from './engine/catalog-world.js'
export { runBodiesModel, runCatalogModel } from './engine/run.js'
export { replayModel, runModel } from './run.js'
export type { Step, StepKind } from './step.js'
export { steps } from './steps/index.js'
export type { ModelSetup } from './world.js'
