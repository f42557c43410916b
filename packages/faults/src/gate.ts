/**
 * The command that judges a run: `node dist/gate.js --folder <records>`. Reads what its tests have written down, writes `report.json`
 * beside it, prints the matrix, and fails where the gate is closed.
 *   --begin <run>   empties the folder and stamps it with the run instead
 *   --no-server <reason>   there is no server on this machine: what needs one is named, not judged
 */
import { mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { pathToFileURL } from 'node:url'
import { type Judgement, judge } from './matrix/gate.js'
import { matrixLines } from './matrix/print.js'
import { REPORT_FILE, readRecords, STAMP_FILE } from './matrix/records.js'
import { type ContestedSurfaces, contestedSurfaces } from './surfaces.js'

/** Makes the folder ready for a run: nothing of an earlier one is left. */
export function beginRun(folder: string, run: string): void {
  rmSync(folder, { recursive: true, force: true })
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, STAMP_FILE), run)
}

/** Judges the records in the folder and writes the report beside them. */
export function judgeRun(
  folder: string,
  { surfaces = contestedSurfaces, noServer }: { readonly surfaces?: ContestedSurfaces; readonly noServer?: string } = {}
): Judgement {
  const judgement = judge(readRecords(folder), { surfaces, ...(noServer !== undefined && { noServer }) })
  mkdirSync(folder, { recursive: true })
  writeFileSync(join(folder, REPORT_FILE), JSON.stringify(judgement.report, undefined, 1))
  return judgement
}

/** What the command prints: the matrix, what was not judged, what is wrong, and the sum. */
export function linesOf({ report, failures }: Judgement, noServer?: string): string[] {
  const { armed, fired, missing } = report
  return [
    ...matrixLines(report, contestedSurfaces),
    '',
    ...(noServer === undefined ? [] : [`not judged: what needs a server (${noServer})`]),
    ...failures.map(failure => `FAIL ${failure}`),
    `${fired} of ${armed} armed faults fired, ${missing.length} squares are missing`
  ]
}

function option(name: string): string | undefined {
  const at = process.argv.indexOf(name)
  return at < 0 ? undefined : process.argv[at + 1]
}

function main(): void {
  const folder = option('--folder') ?? 'test-results/faults'
  const run = option('--begin')
  if (run !== undefined) {
    beginRun(folder, run)
    return
  }
  const noServer = option('--no-server')
  const judgement = judgeRun(folder, noServer === undefined ? {} : { noServer })
  process.stdout.write(`${linesOf(judgement, noServer).join('\n')}\n`)
  process.exitCode = judgement.failures.length === 0 ? 0 : 1
}

if (process.argv[1] !== undefined && import.meta.url === pathToFileURL(process.argv[1]).href) main()
