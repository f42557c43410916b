/**
 * `npm run conformance`: runs every column, writes the report, prints the matrix, and fails unless all of it is sound. With
 * `--check` nothing is run: the report that the last test run left is printed and held against the same gate.
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ColumnResult, reportOf, rows, runColumn, type StoreFactory, writeReport } from '@alkblobs/conformance'
import { columns } from './columns.js'
import { type Gated, gate, gateFile } from './gate.js'

/** The folder of the workspace: reports of all packages lie in one place. */
function workspaceFolder(): string {
  let folder = dirname(fileURLToPath(import.meta.url))
  while (!existsSync(join(folder, 'pnpm-workspace.yaml'))) {
    const parent = dirname(folder)
    if (parent === folder) return process.cwd()
    folder = parent
  }
  return folder
}

async function runAll(factories: readonly StoreFactory[]): Promise<readonly ColumnResult[]> {
  const results: ColumnResult[] = []
  for (const factory of factories) {
    results.push(
      await runColumn(factory, rows, ({ name, status, reason }) => {
        // Progress and failures go to the error output: the matrix alone is the result.
        if (status === 'fail') process.stderr.write(`${factory.name}: ${name} failed\n  ${reason}\n`)
      })
    )
    process.stderr.write(`${factory.name} done\n`)
  }
  return results
}

function print({ table, found }: Gated, factories: readonly StoreFactory[]): void {
  if (table !== '') process.stdout.write(`${table}\n\n`)
  for (const finding of found) process.stdout.write(`${finding}\n`)
  const summary =
    found.length === 0 ? `conforms: ${rows.length} rows, ${factories.length} columns` : `${found.length} findings`
  process.stdout.write(`${summary}\n`)
  process.exitCode = found.length === 0 ? 0 : 1
}

const file = join(workspaceFolder(), 'test-results', 'conformance.json')
const factories = columns.map(make => make())
if (process.argv.includes('--check')) print(await gateFile(file, rows, factories), factories)
else {
  const results = await runAll(factories)
  await writeReport(file, reportOf(results))
  print(gate(results, rows, factories), factories)
}
