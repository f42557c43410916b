/**
 * The benchmarks: alkblobs beside the media it stands on and beside its peers, in one run on one disk. A figure informs; nothing
 * here fails because of one. The exit code is 0 unless something broke.
 */
import { writeFileSync } from 'node:fs'
import { inChild } from './child.mjs'
import { optionsOf, UsageError, usage } from './options.mjs'
import { startPg } from './peers/pg-server.mjs'
import { rows } from './rows/index.mjs'
import { conditionOf, makeSite } from './site.mjs'
import { announce, printLoad, printRow, printVerdicts } from './table.mjs'

const ROW = import.meta.resolve('./children/row.mjs')

async function main(args) {
  const options = optionsOf(args, rows)
  if (options.help) {
    process.stdout.write(usage)
    return
  }
  const site = makeSite(options)
  const chosen = rows.filter(({ id }) => options.ids.includes(id))
  let server
  try {
    announce(options, conditionOf(site))
    if (chosen.some(({ needs }) => needs === 'postgres')) {
      server = await startPg(site.root)
      process.stdout.write(`${server.line}\n`)
    }
    const ratios = []
    const series = []
    for (const { id } of chosen) {
      const row = await inChild(ROW, { id, root: site.root, scale: options.scale, server: server?.at })
      printRow(row)
      ratios.push(...row.ratios)
      if (row.series !== undefined) series.push({ id, ...row.series })
      // After each row: what was measured stays, if the run is ended before its time.
      if (options.json !== undefined)
        writeFileSync(options.json, `${JSON.stringify({ ratios, series }, undefined, 2)}\n`)
    }
    printVerdicts(ratios)
    printLoad('at the end')
  } finally {
    await server?.stop()
    if (!options.keep) site.clear()
  }
}

try {
  await main(process.argv.slice(2))
} catch (error) {
  if (!(error instanceof UsageError)) throw error
  process.stderr.write(`alkblobs bench: ${error.message}\n\n${usage}`)
  process.exitCode = 1
}
