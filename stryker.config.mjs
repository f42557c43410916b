// `npm run mutation` (scripts/mutation.mjs): small edits to the code that decides what is kept and what goes, each of which a test of
// core must notice. What survives, and why, is in docs/spec/mutation.md.
export const SCOPES = {
  sweep: ['sweep/*'],
  put: ['publish', 'put-session', 'put', 'spill', 'drop', 'pins', 'held', 'pin', 'receipt', 'pair/protecting']
}

const sources = Object.values(SCOPES)
  .flat()
  .map(name => `packages/core/src/${name}.ts`)

export default {
  packageManager: 'pnpm',
  plugins: ['@stryker-mutator/vitest-runner'],
  testRunner: 'vitest',
  vitest: { configFile: 'packages/core/vitest.mutation.config.ts', dir: 'packages/core' },
  mutate: sources,
  // The tests of core alone: everything else of the workspace stays out of the copy.
  ignorePatterns: ['**', '!packages/core/{src,tests}/**', '!packages/core/*.{json,ts}', '!*.{json,ts}'],
  coverageAnalysis: 'perTest',
  // A mutant of what is evaluated while a module loads would run every test; there are constants alone.
  ignoreStatic: true,
  // A mutant is tried again only if it or the tests that reach it changed: the whole takes long, what one works at does not.
  incremental: true,
  incrementalFile: 'test-results/mutation-incremental.json',
  timeoutMS: 5_000,
  concurrency: 2,
  tempDirName: '.cache/stryker',
  reporters: ['json', 'progress-append-only'],
  jsonReporter: { fileName: 'test-results/mutation.json' },
  allowEmpty: false
}
