import { defineConfig } from 'tsup'

// One build for every package: ESM only, types and source maps beside it. It compiles against the built types of the
// packages it depends on (tsconfig.build.json has no `paths`), so an import that the published package would not resolve
// fails here.
const tsconfig = 'tsconfig.build.json'

type Entries = Record<string, string>

const shared = {
  format: 'esm',
  target: 'node20',
  platform: 'node',
  sourcemap: true,
  clean: true,
  tsconfig
} as const

/** A package that others import: `entries` are its exports, each with its types. */
export function library(entries: Entries) {
  return defineConfig({ ...shared, entry: entries, dts: true })
}

/** A package that is run, not imported: no types. */
export function program(entries: Entries) {
  return defineConfig({ ...shared, entry: entries, dts: false })
}
