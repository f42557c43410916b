import { readFileSync } from 'node:fs'
import { fileURLToPath } from 'node:url'
import { defineConfig } from 'vitest/config'

// Tests run against the sources, so no build is needed to run them and a stack trace points at the line that threw. The
// aliases are the `paths` of tsconfig.source.json: one list for the type checker and for vitest.
const root = new URL('./', import.meta.url)
const source = readFileSync(new URL('tsconfig.source.json', root), 'utf8').replace(/^\s*\/\/.*$/gm, '')
const paths = JSON.parse(source).compilerOptions.paths as Record<string, [string]>

const alias = Object.entries(paths).map(([name, [file]]) => ({
  find: new RegExp(`^${name}$`),
  replacement: fileURLToPath(new URL(file, root))
}))

// `npm test` runs what needs PostgreSQL, and the property suites, as parts of their own, each with a time budget of its own.
const part = process.env.ALKBLOBS_TEST_PART
// What the run is called in reports: a part may be run on more than one server.
const run = process.env.ALKBLOBS_TEST_RUN ?? part ?? 'all'
const properties = '**/properties*.spec.ts'
const faults = 'tests/faults/**'
const never = ['**/node_modules/**', '**/dist/**']

/** Where the specs that need the server are: all over the package, in one folder of it, or nowhere. */
type Postgres = boolean | string

function selection(postgres: Postgres): { include?: string[]; exclude?: string[] } {
  const onServer = typeof postgres === 'string' ? [`${postgres}/**`] : postgres ? ['**'] : []
  if (part === 'faults') return { include: ['tests/faults/**/*.spec.ts'] }
  if (part === 'embedded') return { exclude: [...never, properties, faults, ...onServer] }
  // Property suites in a folder that needs the server belong to the server's part: they have a server to themselves there.
  if (part === 'properties')
    return { include: [properties], exclude: [...never, ...(postgres === true ? [] : onServer)] }
  if (part !== 'postgres') return {}
  if (typeof postgres === 'string') return { include: [`${postgres}/**/*.spec.ts`], exclude: [...never, faults] }
  return { include: postgres ? ['tests/**/*.spec.ts'] : [], exclude: [...never, properties, faults] }
}

// Joins the PostgreSQL server of this run, or starts it, and lets go of it when the run ends.
const postgresSetup = fileURLToPath(new URL('packages/testkit/src/vitest.ts', root))

/**
 * The vitest configuration of one package; `name` is its folder and the label in reports. With `postgres` its tests, or those
 * in that folder, find the server of the run.
 */
export function suite(name: string, { postgres = false }: { readonly postgres?: Postgres } = {}) {
  const needsServer = postgres !== false && part !== 'embedded' && !(part === 'properties' && postgres !== true)
  return defineConfig({
    resolve: { alias },
    test: {
      name,
      include: ['tests/**/*.spec.ts'],
      passWithNoTests: true,
      testTimeout: 30_000,
      hookTimeout: 30_000,
      ...(needsServer ? { globalSetup: [postgresSetup] } : {}),
      reporters: ['default', ['json', { outputFile: `test-results/${run}.json` }]],
      ...selection(postgres)
    }
  })
}
