/**
 * `npm run conformance`: runs every column, writes the report, prints the matrix, and fails unless all of it is sound.
 *   --check             nothing is run: the report that the last test run left is printed and held against the same gate
 *   --embedded          only the columns that need no server
 *   --postgres <major>  only those that need one, in a report of their own, and of a server of that version
 */
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { fileURLToPath } from 'node:url'
import {
  type ColumnResult,
  lacking,
  reportOf,
  rows,
  runColumn,
  skippedColumn,
  writeReport
} from '@alkblobs/conformance'
import { holdForRun, isRequired, noServer } from '@alkblobs/testkit'
import { columns } from './columns.js'
import type { ColumnFactory } from './factory.js'
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

async function runAll(
  factories: readonly ColumnFactory[],
  noServer: string | undefined
): Promise<readonly ColumnResult[]> {
  const results: ColumnResult[] = []
  for (const factory of factories) {
    if (factory.needsServer && noServer !== undefined) {
      results.push(skippedColumn(factory, rows, noServer))
      continue
    }
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

function print({ table, servers, found: all, skipped }: Gated): void {
  const found = all.filter(line => !excused.has(line))
  if (table !== '') process.stdout.write(`${table}\n\n`)
  for (const line of [...found, ...skipped]) process.stdout.write(`${line}\n`)
  const on = servers.length === 0 ? '' : ` (${servers.join(', ')})`
  const ran = `${rows.length - excused.size} rows, ${factories.length - skipped.length} columns${on}`
  const left = skipped.length === 0 ? '' : `, ${skipped.length} columns skipped`
  process.stdout.write(found.length === 0 ? `conforms: ${ran}${left}\n` : `${found.length} findings\n`)
  process.exitCode = found.length === 0 ? 0 : 1
}

const isEmbedded = process.argv.includes('--embedded')
const postgres = process.argv.includes('--postgres') ? process.argv[process.argv.indexOf('--postgres') + 1] : undefined
const isChosen = ({ needsServer }: ColumnFactory) =>
  postgres === undefined ? !(isEmbedded && needsServer) : needsServer
const name = postgres === undefined ? 'conformance.json' : `conformance-postgres-${postgres}.json`
const file = join(workspaceFolder(), 'test-results', name)
const all = columns.map(make => make())
const factories = all.filter(isChosen)
// Rows that none of these columns can run are no finding: they belong to the columns that were left out.
const elsewhere = rows.filter(({ needs }) => factories.every(factory => lacking(factory, needs).length > 0))
const excused = new Set(factories.length < all.length ? elsewhere.map(({ name }) => `${name} ran nowhere`) : [])
const beside = all.filter(factory => !isChosen(factory)).map(({ name }) => name)
const judgement = { rows, factories, beside, postgres, isServerRequired: isRequired() }
if (process.argv.includes('--check')) print(await gateFile(file, judgement))
else {
  const server = await holdForRun()
  process.stderr.write(`columns use ${server.line}\n`)
  try {
    const results = await runAll(factories, noServer())
    await writeReport(file, reportOf(results))
    print(gate(results, judgement))
  } finally {
    await server.release()
  }
}
