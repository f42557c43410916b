/**
 * The store model: a store against plain data, step by random step. Give it the factory of your column; it compares every
 * answer and every report. Needs `fast-check`.
 */
export { type ModelOptions, type ModelRuns, replayModel, runModel } from './run.js'
export type { Step, StepKind } from './step.js'
export { steps } from './steps/index.js'
export type { ModelSetup } from './world.js'
