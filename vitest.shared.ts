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

// `npm test` runs the property suites as a part of their own, with a time budget of their own.
const part = process.env.ALKBLOBS_TEST_PART
const properties = '**/properties*.spec.ts'
const selections: Record<string, { include?: string[]; exclude?: string[] }> = {
  embedded: { exclude: ['**/node_modules/**', '**/dist/**', properties] },
  properties: { include: [properties] }
}

// Joins the PostgreSQL server of this run, or starts it, and lets go of it when the run ends.
const postgresSetup = fileURLToPath(new URL('packages/testkit/src/vitest.ts', root))

/**
 * The vitest configuration of one package; `name` is its folder and the label in reports. With `postgres` its tests find
 * the server of the run.
 */
export function suite(name: string, needs: { readonly postgres?: boolean } = {}) {
  return defineConfig({
    resolve: { alias },
    test: {
      name,
      include: ['tests/**/*.spec.ts'],
      passWithNoTests: true,
      testTimeout: 30_000,
      hookTimeout: 30_000,
      ...(needs.postgres ? { globalSetup: [postgresSetup] } : {}),
      reporters: ['default', ['json', { outputFile: `test-results/${part ?? 'all'}.json` }]],
      ...(part === undefined ? {} : selections[part])
    }
  })
}
