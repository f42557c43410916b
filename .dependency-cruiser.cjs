// The arrows of the house, each with its reason. `npm run lint` fails on the first import that points the other way.
/** @type {import('dependency-cruiser').IConfiguration} */
module.exports = {
  forbidden: [
    {
      name: 'core-imports-no-engine',
      comment: 'Core must not know any engine, or a third party could never write one that is its equal.',
      severity: 'error',
      from: { path: '^packages/core/src/' },
      to: { path: '^packages/(engine-[^/]+|postgres-[^/]+|cli|columns|testkit)/|^conformance/' }
    },
    {
      name: 'engines-import-only-the-contract',
      comment:
        "An engine sees core's engine contract and nothing else of it: what it needs beyond belongs in the contract.",
      severity: 'error',
      from: { path: '^packages/(engine|postgres)-[^/]+/src/' },
      to: { path: '^packages/core/src/', pathNot: '^packages/core/src/engine\\.ts$' }
    },
    {
      name: 'engines-import-no-engine',
      comment: 'Any catalog must work with any body store, so neither may lean on the other.',
      severity: 'error',
      from: { path: '^packages/(engine-[^/]+)/src/' },
      to: { path: '^packages/engine-', pathNot: '^packages/$1/' }
    },
    {
      name: 'postgres-session-knows-no-catalog',
      comment: 'The guard around the driver serves whoever needs a session; it must not know what is kept over it.',
      severity: 'error',
      from: { path: '^packages/postgres-session/src/' },
      to: { path: '^packages/(?!postgres-session/|core/)' }
    },
    {
      name: 'postgres-catalog-knows-no-engine',
      comment: 'The SQL catalog is written once for both PostgreSQL engines, so it may lean on neither.',
      severity: 'error',
      from: { path: '^packages/postgres-catalog/src/' },
      to: { path: '^packages/(?!postgres-catalog/|postgres-session/|core/)' }
    },
    {
      name: 'only-sessions-import-the-driver',
      comment:
        'The driver loses statements and processes with a dying connection; one guard stands before it, for all.',
      severity: 'error',
      from: { path: '/src/', pathNot: '^(packages/(postgres-session|testkit|columns|faults)|bench)/' },
      to: { path: 'node_modules/postgres/' }
    },
    {
      name: 'testkit-imports-nothing-of-ours',
      comment: 'What finds a server for the tests must not break with what they test.',
      severity: 'error',
      from: { path: '^packages/testkit/' },
      to: { path: '^(packages/(?!testkit/)|conformance/)' }
    },
    {
      name: 'engines-import-no-suite',
      comment:
        'The suite judges the engines; shipped engine code that imports it would bring a test suite to its users.',
      severity: 'error',
      from: { path: '^packages/(engine-[^/]+|postgres-[^/]+|core|cli)/src/' },
      to: { path: '^conformance/|^packages/(columns|testkit)/' }
    },
    {
      name: 'nothing-ships-with-faults',
      comment:
        'What makes things fail must not be where it could ever do so by itself; the kit wraps engines from outside.',
      severity: 'error',
      from: { path: '/src/', pathNot: '^packages/faults/' },
      to: { path: '^packages/faults/' }
    },
    {
      name: 'faults-imports-only-core',
      comment: 'A kit that imports an engine knows it, and treats it otherwise than the engine of somebody else.',
      severity: 'error',
      from: { path: '^packages/faults/src/' },
      to: { path: '^packages/(?!faults/|core/)|^conformance/' }
    },
    {
      name: 'conformance-imports-only-core',
      comment: 'A suite that imports an engine favours it, and closes a circle: the engines are tested with the suite.',
      severity: 'error',
      from: { path: '^conformance/' },
      to: { path: '^packages/', pathNot: '^packages/core/' }
    },
    {
      name: 'cli-imports-engines-dynamically',
      comment: 'The command loads an engine when a store names it, so a missing or broken one costs only who uses it.',
      severity: 'error',
      from: { path: '^packages/cli/src/' },
      to: { path: '^packages/engine-', dynamic: false, dependencyTypesNot: ['type-only', 'type-import'] }
    },
    {
      name: 'no-reaching-into-another-package',
      comment:
        'Packages meet at their published exports; a path into another src/ works here and breaks once installed.',
      severity: 'error',
      from: { path: '^(packages/[^/]+|conformance|bench)/' },
      to: { path: '^(packages/[^/]+|conformance|bench)/', pathNot: '^$1/', dependencyTypesNot: ['aliased'] }
    },
    {
      name: 'no-circular',
      comment: 'Two files that need each other are one concept in two files, or two concepts not yet separated.',
      severity: 'error',
      from: {},
      to: { circular: true, viaOnly: { dependencyTypesNot: ['type-only'] } }
    },
    {
      name: 'sources-import-no-tests',
      comment: 'What ships must not depend on what does not.',
      severity: 'error',
      from: { path: '/src/' },
      to: { path: '/tests/' }
    },
    {
      name: 'sources-import-no-dev-dependency',
      comment: 'A development dependency is not there after an install, so the published package would not start.',
      severity: 'error',
      from: { path: '^(packages/(?!columns/)[^/]+|conformance)/src/' },
      to: {
        dependencyTypes: ['npm-dev'],
        dependencyTypesNot: ['type-only', 'npm-peer'],
        pathNot: 'node_modules/@types/'
      }
    },
    {
      name: 'no-unresolvable',
      comment: 'An import that resolves to nothing is an error that waits for its user.',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true }
    }
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    exclude: { path: '(^|/)dist/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.source.json' },
    combinedDependencies: false,
    enhancedResolveOptions: { exportsFields: ['exports'], conditionNames: ['types', 'import', 'node', 'default'] }
  }
}
