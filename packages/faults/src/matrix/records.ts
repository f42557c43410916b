/** Reads what the tests of a run have written down, and says what cannot be believed of it. */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { FaultRecord, LedgerFile } from '../ledger.js'

/** The file in which a run says who it is. Written before the tests, so that what lay there before cannot pass for theirs. */
export const STAMP_FILE = 'run.stamp'
/** The file that the gate writes. */
export const REPORT_FILE = 'report.json'

export interface Records {
  readonly run: string | undefined
  readonly records: readonly FaultRecord[]
  /** One line for each file that is unreadable, or of another run. */
  readonly doubts: readonly string[]
}

export function readRecords(folder: string): Records {
  const run = textOf(join(folder, STAMP_FILE))
  const records: FaultRecord[] = []
  const doubts: string[] = run === undefined ? ['the run left no stamp: what the records belong to cannot be told'] : []
  for (const name of namesIn(folder)) {
    const file = fileOf(join(folder, name))
    if (file === undefined) doubts.push(`${name} cannot be read: its tests ended in the middle`)
    else if (file.run !== run) doubts.push(`${name} is of another run`)
    else records.push(...file.records)
  }
  return { run, records, doubts }
}

/** A file that is only half written counts: it is what a test leaves that was killed. */
function namesIn(folder: string): string[] {
  try {
    return readdirSync(folder)
      .filter(name => name !== REPORT_FILE && name !== STAMP_FILE)
      .sort()
  } catch {
    return []
  }
}

function textOf(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch {
    return undefined
  }
}

function fileOf(path: string): LedgerFile | undefined {
  try {
    const file = JSON.parse(readFileSync(path, 'utf8')) as Partial<LedgerFile>
    return typeof file.run === 'string' && Array.isArray(file.records) ? (file as LedgerFile) : undefined
  } catch {
    return undefined
  }
}
