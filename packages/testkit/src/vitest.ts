/** The set-up of a test run that needs PostgreSQL: named in a package's `vitest.config.ts`, runs once, before its workers. */
import { holdForRun } from './shared.js'

export default async function setup(): Promise<() => Promise<void>> {
  const { line, release } = await holdForRun()
  process.stdout.write(`tests use ${line}\n`)
  return release
}
