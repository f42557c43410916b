/** `npm run conformance`: runs every column, writes the report, prints the matrix, and fails unless all of it is sound. */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { type ColumnResult, findings, matrix, reportOf, rows, runColumn, writeReport } from '@alkblobs/conformance'
import { columns } from './columns.js'

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

const factories = columns.map(make => make())
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
const file = join(workspaceFolder(), 'test-results', 'conformance.json')
await writeReport(file, reportOf(results))
process.stdout.write(`${matrix(results, rows)}\n\n`)
const found = findings(results, rows, factories)
for (const finding of found) process.stdout.write(`${finding}\n`)
process.stdout.write(
  found.length === 0 ? `conforms: ${rows.length} rows, ${factories.length} columns\n` : `${found.length} findings\n`
)
process.exitCode = found.length === 0 ? 0 : 1
